// Where the workers of a plan wait for each other, and how far apart they arrive.
#pragma once

#include <span>
#include <vector>

#include "tasks/costs.h"

namespace regatta {

// A point of synchronisation. Seconds of computing since the one before, of the first worker to
// arrive and of the last.
struct Meeting {
  double first = 0, last = 0;
};

// The meetings of a training step with these task times: at meeting points inside it and at its
// end. Each chunk is on the worker that Placement::hybrid gives it.
std::vector<Meeting> meetings(const Blueprint& blueprint, const TaskList& list,
                              std::span<const double> seconds);
// As they are predicted, on workers as slow as the plan makes them.
std::vector<Meeting> meetings(const Blueprint& blueprint, const TaskList& list,
                              const TaskCosts& costs);

// The share of the time to the meetings that the first workers wait for the last, from 0 to 1.
double apart(const std::vector<Meeting>& meetings);

// Seconds of computing in the step, by chunk.
std::vector<double> chunk_seconds(const Blueprint& blueprint, const TaskList& list,
                                  std::span<const double> seconds);
std::vector<double> chunk_seconds(const Blueprint& blueprint, const TaskList& list,
                                  const TaskCosts& costs);

}  // namespace regatta
