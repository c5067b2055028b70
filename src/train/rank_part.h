// The part of one rank in a plan for several ranks.
#pragma once

#include <vector>

#include "plan/make_plan.h"
#include "train/job.h"
#include "train/ranks.h"

namespace regatta {

// Options that cut a rank's share as `plan`, of one process or of all ranks, is cut. Chunks are
// those of `request`, but for a deterministic plan: it keeps its own chunks, which must not depend
// on the ranks that compute them.
PlanOptions options_of(const Plan& plan, const RankRequest& request);

// Copies from `before` what does not depend on the shares of ranks: segments, which tasks are
// gathered, bucket size, steps in flight, loaders and placement.
void keep_the_rest(Plan& plan, const Plan& before);

// Sets DeviceGroup::slow. `slow`: by worker; workers beyond its end are not slowed down.
void keep_slow(Plan& plan, std::vector<double> slow);

// Makes the job's plan this rank's part of `whole`, whose nodes are in the order of ranks. `sites`:
// by rank, see sites_of().
void take_part(Ranks& ranks, TrainJob& job, Plan whole, std::vector<int> sites);

}  // namespace regatta
