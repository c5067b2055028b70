// What a batch needs on the cores of one node, from what its chunks need: chunks are whole samples,
// and one that would take longer than the step cannot be among them.
#pragma once

#include "optimize/problem.h"

namespace regatta::optimize {

// Of the whole batch in chunks that each take no longer than a step; infinite: there are no such
// chunks. Seconds and joules may be those of different chunks.
struct BatchCost {
  double seconds = 0, joules = 0;
};
BatchCost least_batch(const LeastCosts& costs, std::int64_t batch, double longest_step_s);

// Seconds of the whole batch if its chunks are computed one after the other.
double least_in_one_lane(const LeastCosts& costs, std::int64_t batch);

}  // namespace regatta::optimize
