// StarPU's own performance models, to compare with: how long a task takes, learned by StarPU from
// earlier runs (plan.perf_model).
#pragma once

#include <starpu.h>

#include <array>
#include <string>

#include "plan/plan.h"
#include "tasks/task_list.h"

namespace regatta {

// A codelet and a model for every phase that may lead a task. A history is found by what the task
// does and on how many samples; a regression goes over the FLOPs of all tasks of a phase.
// StarPU writes its models down when it ends, so this outlives it.
class PerfModels {
 public:
  // `network` becomes part of the models' names: what was learned of one is no help to another.
  PerfModels(PerfModel kind, const std::string& network);
  PerfModels(const PerfModels&) = delete;
  PerfModels& operator=(const PerfModels&) = delete;

  // Copies of these, each with its model. After StarPU has started.
  void describe(const starpu_codelet& cpu, const starpu_codelet& cuda);
  starpu_codelet* of(const Task& task, bool on_gpu);

 private:
  static constexpr std::size_t phases = static_cast<std::size_t>(Phase::exchange_results) + 1;
  struct PerPhase {
    std::string symbol;
    starpu_perfmodel model{};
    starpu_codelet cpu{}, cuda{};
  };

  PerfModel kind_;
  std::array<PerPhase, phases> per_phase_;
};

}  // namespace regatta
