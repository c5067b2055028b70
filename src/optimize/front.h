// The front of time against energy or money: for each deadline the plan that needs least.
#pragma once

#include "optimize/bound.h"
#include "optimize/search.h"

namespace regatta::optimize {

struct FrontPoint {
  Choice choice;
  double value = 0;  // joules or money of a step
  double bound = 0;  // proven: no plan that is as fast needs less
};

// From the fastest plan to the one that needs least: each point is slower and needs less than the
// one before. `against` is energy or cost. Empty: no plan keeps the limits.
std::vector<FrontPoint> front(const Problem& problem, Objective against, const Limits& limits,
                              int points);

}  // namespace regatta::optimize
