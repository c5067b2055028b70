// What a plan's devices do, and why: who rests, who waits, what the gap to the bound is made of.
#pragma once

#include "app/optimized_candidate.h"
#include "app/optimized_plan.h"

namespace regatta::app {

std::vector<DeviceRole> roles(const Platform& platform, const optimize::Problem& problem,
                              const Candidate& made, double step_s);

// The lower ends of the costs of all devices in use, as a share of these costs.
double low_share(const optimize::Problem& problem, const Platform& platform, const Candidate& made);

// The proven bound of the objective itself.
double proven(const optimize::Problem& problem, const optimize::Limits& limits,
              optimize::Objective objective, const optimize::Bound& bound, double best_known);

// Adds to the reasons: `choice` is the plan's, if it is none of stages; `bound` the objective's.
void tell_reasons(Optimized& made, const optimize::Problem& problem, const optimize::Limits& limits,
                  const std::optional<optimize::Choice>& choice, double bound);

}  // namespace regatta::app
