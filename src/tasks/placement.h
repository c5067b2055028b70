// What a plan fixes of who runs a task of a step, and when. The executor, the player and the
// simulator read the same.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "tasks/policy.h"

namespace regatta {

// The chunk that a task computes on.
std::optional<ChunkId> computed_chunk(const Task& task);

// By task; nothing is fixed in lists that the plan has no order for (it has one for
// ListKind::train).
std::vector<FixedPlace> fixed_places(const Blueprint& blueprint, const TaskList& list);

// By task: contention_of() the worker that it is fixed to, or the mean over all workers that may
// run it.
std::vector<double> contention_of(const Blueprint& blueprint, const TaskList& list);

// Every reason why the plan's order cannot be followed: tasks of no worker or of two, workers
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

// The places of a list's tasks in any of its steps. Turns are counted on from step to step, so that
// a worker runs its tasks of one step before those of the next.
class StepPlaces {
 public:
  StepPlaces() = default;
  StepPlaces(std::vector<FixedPlace> places, std::size_t workers);

  FixedPlace at(std::size_t task, std::int64_t step) const;

 private:
  std::vector<FixedPlace> places_;   // by task, of the first step
  std::vector<std::int64_t> turns_;  // by worker: how many it has in a step
};

// The policy where the plan binds some tasks to workers: a worker may take unbound tasks and its
// own; of its own tasks that have a turn, only the one whose turn is next.
class Turns {
 public:
  explicit Turns(std::size_t workers) : next_(workers, 1), skipped_(workers) {}

  // Which of `ready` the worker takes; -1: none.
  std::ptrdiff_t pick(std::span<const ReadyTask> ready, int worker);
  void taken(const ReadyTask& task);
  // A task with a turn will never be ready: its worker's later turns do not wait for it.
  void skip(const FixedPlace& place);

 private:
  std::vector<std::int64_t> next_;               // by worker: its next turn
  std::vector<std::set<std::int64_t>> skipped_;  // by worker: turns after that
  std::vector<ReadyTask> allowed_;               // kept for its memory
  std::vector<std::ptrdiff_t> where_;            // of `allowed_` in `ready`
};

}  // namespace regatta
