// Chunks sized by the speeds of a node's cores, where these are unequal: one for each worker, so
// that all of them arrive together where they meet.
#pragma once

#include "plan/plan.h"
#include "plan/recipe.h"
#include "sim/fleet_plan.h"
#include "tune/balance.h"

namespace regatta::app {

// A plan, and what its costs say of the shares of its workers.
struct SpeedChunks {
  Plan plan;
  TriedShares shares;  // of the last node that was balanced
};

// The plan with a chunk for each worker of the nodes whose cores are unequal, by costs and the
// balancer of `train --shares speed`; a chunk stays with its worker (placement hybrid). If the plan
// is for several nodes, the one in which each node's workers are least apart. If it is for one:
// every attempt of the balancer's search, and some whose slow workers have less than that, so that
// they hold nobody up where tasks take longer than usual, and are free to take steps of parameters.
// Empty if no node's one group has workers of several speeds and a granule of samples for each of
// them.
std::vector<SpeedChunks> chunks_by_speed(const Graph& graph, const Recipe& recipe,
                                         const Platform& platform, const sim::Profiles& profiles,
                                         const Plan& plan);

}  // namespace regatta::app
