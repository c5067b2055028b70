// What a data-parallel step takes on chosen devices, by closed formulas: the model that choices are
// searched with. The best of them are simulated before one is taken.
#pragma once

#include <vector>

#include "optimize/problem.h"

namespace regatta::optimize {

// What a step takes.
struct Outcome {
  double step_s = 0, energy_j = 0;
  double cost = 0;        // money; a rented node's least time is spread over all steps
  double compute_s = 0;   // until the last device has its gradients
  double exchange_s = 0;  // of all gradients, if nothing else happened
  double peak_watts = 0;  // while all devices compute
};

// The samples of the devices that are used alike: each gets `share`, the first `one_more` of them
// one sample more.
struct Portion {
  std::int64_t devices = 0, share = 0, one_more = 0;
  std::int64_t samples() const { return devices * share + one_more; }
  std::int64_t most() const { return share + (one_more > 0 ? 1 : 0); }
};

// Which devices train, in which states, with which shares, and how their gradients meet.
struct Choice {
  std::vector<NodeUse> uses;
  std::vector<std::vector<Portion>> portions;  // by use and device
  NodeUpdate update = NodeUpdate::ring;
  Outcome outcome;
};

// A choice's value for an objective; less is better.
double value_of(const Outcome& outcome, Objective objective);
// How far a choice is beyond the limits, as a share of the worst one; 0: it keeps them all.
double excess(const Problem& problem, const Outcome& outcome, const Limits& limits);

// The best shares for these uses, and the best way to exchange gradients: each device that takes
// part gets one sample at least, and no more than its memory holds. None: they cannot hold the
// batch, or there are more of them than samples.
//
// A step is over when all gradients are exchanged. Those of a segment can leave when the last
// device has them, and wait for those that left before:
//   step = max over segments s of ready(s) * compute + exchange of s and all that follow it,
// whose bytes follow each other, while rounds of messages of one fill the pauses of another.
// For a given compute time the cheapest samples go first to devices whose samples draw (or, for
// money, cost) least; compute times that are tried are those at which some device has a sample
// more, all of them where they are few.
std::optional<Choice> best_shares(const Problem& problem, std::vector<NodeUse> uses,
                                  Objective objective, const Limits& limits);

// The step with these shares. `portions` add up to the batch.
Outcome outcome_of(const Problem& problem, const std::vector<NodeUse>& uses,
                   const std::vector<std::vector<Portion>>& portions, NodeUpdate update);

// The exchange of nodes with a link each to the switch of their domain, by bandwidths alone.
ExchangeCost star_exchange(const Problem& problem, std::span<const NodeUse> uses,
                           NodeUpdate update);

// Ways to exchange gradients that choices are made among.
std::span<const NodeUpdate> all_updates();

}  // namespace regatta::optimize
