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

// The plan with a chunk for each worker of the nodes whose cores are unequal. By costs and the
// balancer of `train --shares speed`: every attempt of its search if the plan is for one node, else
// the one in which each node's workers are least apart. A chunk stays with its worker (placement
// hybrid). Empty if no node's one group has workers of several speeds and a granule of samples for
// each of them.
std::vector<SpeedChunks> chunks_by_speed(const Graph& graph, const Recipe& recipe,
                                         const Platform& platform, const sim::Profiles& profiles,
                                         const Plan& plan);

}  // namespace regatta::app
