// What a plan fixes of who runs a task of a step, and when. The executor, the player and the
// simulator read the same.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tasks/policy.h"

namespace regatta {

// Of one task.
struct FixedPlace {
  int worker = -1;         // of workers_of(plan); -1: whoever may run it and is free
  std::uint32_t turn = 0;  // among the worker's tasks of the step, from 1; 0: once it is ready
};

// By task; nothing is fixed in lists that the plan has no order for (it has one for Job::train),
// nor of tasks that submit others.
std::vector<FixedPlace> fixed_places(const Blueprint& blueprint, const TaskList& list);

// By task: company_of the worker that the plan gives it, or the mean over those that may run it.
std::vector<double> company_of(const Blueprint& blueprint, const TaskList& list);

// Every reason why the plan's order cannot be followed: tasks that nobody runs or two do, workers
// of another group, and tasks that would wait for each other for ever. Empty without an order.
std::vector<std::string> order_faults(const Blueprint& blueprint, const TaskList& list);
void require_order(const Blueprint& blueprint, const TaskList& list);  // InputError, all of them

// Where and when a task ran, in a play or in a recorded step.
struct RanAt {
  int worker = -1;  // of workers_of(plan)
  double start = 0;
};
// For Plan::order, to repeat it.
std::vector<std::vector<std::uint32_t>> order_of(std::span<const RanAt> tasks, std::size_t workers);

// Whose turn it is, from step to step.
class Turns {
 public:
  Turns(std::vector<FixedPlace> places, std::size_t workers);

  bool nothing_fixed() const { return nothing_fixed_; }
  // Which of `ready` the worker takes: by the policy among those it may. -1: none.
  std::ptrdiff_t pick(std::span<const ReadyTask> ready, int worker);
  void taken(const ReadyTask& task, int worker);

 private:
  bool may_take(const ReadyTask& task, int worker) const;

  std::vector<FixedPlace> places_;
  bool nothing_fixed_ = true;
  struct Position {
    std::int64_t list = 0;
    std::uint32_t turn = 1;
  };
  std::vector<Position> next_;         // by worker
  std::vector<std::uint32_t> turns_;   // by worker: of a step
  std::vector<ReadyTask> allowed_;     // kept for its memory
  std::vector<std::ptrdiff_t> where_;  // of `allowed_` in `ready`
};

}  // namespace regatta
