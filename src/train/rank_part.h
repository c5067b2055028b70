// A rank's part of a plan for several.
#pragma once

#include <vector>

#include "plan/make_plan.h"
#include "train/job.h"
#include "train/ranks.h"

namespace regatta {

// How one rank's share is cut, as this plan has it. `plan` is that of one process or of all ranks:
// with `deterministic` its chunks are the recipe's, whoever computes them.
PlanOptions options_of(const Plan& plan, const RankRequest& request);

// What the plan before says of everything but who computes how much.
void keep_the_rest(Plan& plan, const Plan& before);

// `slow` by worker, see DeviceGroup; more workers than it names are as fast as they are.
void keep_slow(Plan& plan, std::vector<double> slow);

// This rank carries out its part of a plan in which nodes stand in the order of ranks.
void take_part(Ranks& ranks, TrainJob& job, Plan whole, std::vector<int> sites);

}  // namespace regatta
