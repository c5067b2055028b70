// A proven bound: no plan of the class is better, whatever devices, shares, stages and exchanges it
// has. docs/optimizer.md gives the proof.
#pragma once

#include <vector>

#include "optimize/linear_program.h"
#include "optimize/problem.h"

namespace regatta::optimize {

enum class Quantity { step_s, energy_j, cost };

// Plans that use nodes of these kinds only, all joined by links that carry what an exact exchange
// must send in `least_step_s` at most.
struct Scenario {
  std::vector<std::int64_t> nodes;  // by kind: how many may take part
  double least_step_s = 0;  // that exchange, or the longest chain of work, whichever is more
};

// All plans of the class are in one of them: those on one node, and for each speed of a link those
// whose slowest link is that one.
std::vector<Scenario> scenarios(const Problem& problem);

// Seconds of the steps that a bound is of.
struct StepRange {
  double least_s = 0;
  double most_s = 0;  // not less than the step of some best plan
  // No plan that the bound is of has a longer step, so none of their chunks takes longer.
  double longest_s = std::numeric_limits<double>::infinity();
};

// The relaxation of a scenario: work can be divided at will, between devices and between states of
// one; a node is on only while one of its devices computes.
LinearProgram relaxation(const Problem& problem, const Scenario& scenario, Quantity quantity,
                         const Limits& limits, const StepRange& range);

struct Bound {
  double step_s = 0, energy_j = 0, cost = 0;  // of a step, each by itself
};

// Over all plans that keep the limits; infinite where the relaxation proves that there is none.
double lower_bound(const Problem& problem, Quantity quantity, const Limits& limits);
Bound lower_bounds(const Problem& problem, const Limits& limits);

// A bound of joules times seconds: the least over slices of time, in each of which energy and time
// have bounds of their own. `best_known` is some plan's.
double edp_bound(const Problem& problem, const Limits& limits, double best_known);

// Bytes that cross a link in each direction if nodes on both sides of it take part.
double least_crossing_bytes(const Problem& problem);

}  // namespace regatta::optimize
