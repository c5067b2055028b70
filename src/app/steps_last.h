// Plans in which no worker takes a step of parameters while chunks are still to be computed: a
// worker that is early at a meeting would hold the others up by it.
#pragma once

#include <optional>

#include "plan/plan.h"
#include "plan/recipe.h"
#include "sim/fleet_plan.h"

namespace regatta::app {

// The plan with each worker's tasks in a fixed order (placement static): as they are played with
// each chunk kept by one worker, but all steps of parameters at the end, each by the worker that is
// done with it first. None: the plan is not for several CPU workers of one node with a chunk each,
// or its steps have several batches.
std::optional<Plan> with_steps_last(const Graph& graph, const Recipe& recipe,
                                    const Platform& platform, const sim::Profiles& profiles,
                                    const Plan& plan);

}  // namespace regatta::app
