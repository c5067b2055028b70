// What a plan fixes of who runs a task of a step, and when. The executor, the player and the
// simulator read the same.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
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
  StepPlaces(std::vector<FixedPlace> places, std::size_t workers,
             std::shared_ptr<const Pace> pace = {});

  FixedPlace at(std::size_t task, std::int64_t step) const;

 private:
  std::vector<FixedPlace> places_;   // by task, of the first step
  std::vector<std::int64_t> turns_;  // by worker: how many it has in a step
  std::shared_ptr<const Pace> pace_;
};

// The pace of a list that trains, whose tasks take these seconds and have these upward ranks. Null
// if the plan has no pace.
std::shared_ptr<const Pace> pace_of(const Plan& plan, std::vector<double> seconds,
                                    std::vector<double> ranks);

// The policy where the plan binds some tasks to workers: a worker may take unbound tasks and its
// own; of its own tasks that have a turn, only the one whose turn is next. With a pace it also
// counts what is left of each step.
class Turns {
 public:
  explicit Turns(std::size_t workers) : running_(workers), next_(workers, 1), skipped_(workers) {}

  static constexpr std::ptrdiff_t none = -1;
  // The worker leaves the ready tasks to others for now, and should look again soon.
  static constexpr std::ptrdiff_t rest = -2;

  // Which of `ready` the worker, which has nothing to do, takes `now`, in seconds.
  std::ptrdiff_t pick(std::span<const ReadyTask> ready, int worker, double now);
  void taken(const ReadyTask& task, int worker);
  void ended(int worker);  // the worker's task has ended; a pick() by the worker says so too
  // A task with a turn will never be ready: its worker's later turns do not wait for it.
  void skip(const FixedPlace& place);

 private:
  struct PacedStep {
    double due = 0;   // when the step should be over, by the clock of pick(), in seconds
    double left = 0;  // seconds of tasks that have not ended
  };
  struct Running {
    std::int64_t list = 0;
    double seconds = 0;
  };
  std::ptrdiff_t choose(std::span<const ReadyTask> ready, int worker);
  bool leaves(const ReadyTask& task, int worker, double now);

  const Pace* pace_ = nullptr;                   // of the steps below
  std::map<std::int64_t, PacedStep> paced_;      // by list
  double last_due_ = 0;                          // of the latest of them
  std::vector<Running> running_;                 // by worker, of paced lists
  std::vector<std::int64_t> next_;               // by worker: its next turn
  std::vector<std::set<std::int64_t>> skipped_;  // by worker: turns after that
  std::vector<ReadyTask> allowed_;               // kept for its memory
  std::vector<std::ptrdiff_t> where_;            // of `allowed_` in `ready`
};

}  // namespace regatta
