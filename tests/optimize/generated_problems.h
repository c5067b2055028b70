// Small problems made from numbers, and their best plans by trying every one.
#pragma once

#include <random>

#include "optimize/bound.h"
#include "optimize/model.h"

namespace regatta::optimize {

struct Size {
  int devices = 4;  // at most, of all nodes together
  int segments = 6;
  std::int64_t batch = 8;
};

// The same for the same number. Costs, watts, links, states, sites and memory are all drawn.
Problem generated(std::uint32_t number, const Size& size);

// Says of half of what does not depend on samples that it is the step of the parameters.
void name_updates(Problem& problem);

// Tries every set of devices, every state of each, every whole-sample share and every way to
// exchange gradients. None: no set holds the batch or keeps the limits.
std::optional<Outcome> best_by_trying_all(const Problem& problem, Objective objective,
                                          const Limits& limits = {});

}  // namespace regatta::optimize
