// The plan's groups and workers by StarPU's numbers.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace regatta {

struct WorkerIds {
  // After StarPU has started.
  explicit WorkerIds(const Plan& plan);

  std::vector<int> gpu;           // by group: its worker; -1: the CPU workers
  std::vector<int> memory_nodes;  // by group
  std::vector<int> workers;       // by worker of the plan
};

}  // namespace regatta
