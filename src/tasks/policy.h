// The node's scheduling policy: one pure function. The planner and the simulator call it as it is,
// the executor from inside StarPU.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tasks/costs.h"
#include "tasks/dependencies.h"

namespace regatta {

// What the policy needs to know of a list where the plan has a pace.
struct Pace {
  double step_s = 0;                   // seconds that a step may take
  std::vector<WorkerPower> workers;    // that run its tasks
  std::vector<double> seconds, ranks;  // by task, on workers at full speed: its own, and from its
                                       // start to the end of the list
  double all_seconds = 0;              // of all tasks
};

// What a plan fixes of who runs a task, and when.
struct FixedPlace {
  int worker = -1;             // of workers_of(plan), in the executor StarPU's number; -1: any
  std::int64_t turn = 0;       // among the worker's tasks of a step, from 1; 0: once it is ready
  const Pace* pace = nullptr;  // of its list; none: whoever is free takes it
};

// A task that waits for nothing any more.
struct ReadyTask {
  std::int64_t list = 0;   // which submitted list it belongs to; they count up
  double rank = 0;         // seconds from its start to the end of its list, at best
  std::int64_t order = 0;  // place in its list
  int home = -1;           // the worker that has its data at hand; -1: none has
  FixedPlace fixed = {};   // its turn counted over all steps, see StepPlaces
};

// Which of `ready` (not empty, all of them tasks this worker may run) the worker takes next.
// Work of earlier lists goes first, so that loading ahead and the next step fill gaps only; then
// what has the longest way ahead of it. What is nearly as urgent goes before it if this worker has
// the data of it.
std::size_t pick(std::span<const ReadyTask> ready, int worker);

// Whether a worker should leave a task of a list to workers that need fewer joules for it, and
// rest: they alone can do the `work` seconds that are left of the step in the `time` seconds until
// it is due, and even the slowest of them all that follows the task.
bool leaves(const Pace& pace, std::size_t task, int worker, double work, double time);

// For every task of a list, seconds from its start to the end of the list if nothing but its
// successors had to wait.
std::vector<double> ranks(const TaskList& list, const TaskCosts& costs, int busy);
// The same from seconds by task, and the list's dependencies, ordered by task.
std::vector<double> ranks(std::vector<double> seconds, std::span<const Dependencies::Edge> edges);

}  // namespace regatta
