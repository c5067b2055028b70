// Plays a task list for a few steps, quickly: events, the node's policy and predicted costs, no
// links and no memory. What the choice of a plan is made by.
#pragma once

#include <vector>

#include "tasks/costs.h"

namespace regatta {

// Where a task of the last step ran, and when, from the start of the play.
struct PlayedTask {
  int worker = -1;
  double start = 0, end = 0;
};

// Shares of a worker's time in the steps that count; they add up to 1.
struct PlayedShares {
  double busy = 0;
  double overhead = 0;  // of the runtime, between tasks
  double idle = 0;
};

struct Played {
  double step_seconds = 0;
  std::vector<PlayedShares> workers;  // CPU workers of the groups in order, a worker for each GPU
  PlayedShares total;                 // mean over workers
  std::vector<PlayedTask> tasks;      // by task of the list
};

// `list` was lowered from `blueprint`; a list that trains. The last two thirds of the steps that
// are played are averaged.
Played play(const Blueprint& blueprint, const TaskList& list, const TaskCosts& costs);

// Seconds that no placement can beat: the work of each group, spread evenly over its workers.
double least_seconds(const Blueprint& blueprint, const TaskList& list, const TaskCosts& costs);

}  // namespace regatta
