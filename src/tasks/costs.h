// What tasks are expected to take: the numbers that the planner, the simulator and the schedulers
// share.
#pragma once

#include "profile/profile.h"
#include "tasks/task_list.h"

namespace regatta {

class TaskCosts {
 public:
  virtual ~TaskCosts() = default;

  // Of a task on a full batch. `busy`: workers of its group that compute at that time, this one
  // included; they share memory bandwidth.
  virtual Estimate of(const Task& task, int busy) const = 0;
  virtual RuntimeCosts runtime() const = 0;
};

}  // namespace regatta
