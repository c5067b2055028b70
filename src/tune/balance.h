// Balancing workers, or cores and a GPU, that have one chunk each: by predicted costs, then by what
// real steps take.
#pragma once

#include <cstdint>
#include <vector>

#include "profile/profile.h"
#include "train/job.h"

namespace regatta {

// The chunks of all groups, one after the other, as the plan's.
void give_chunks(Plan& plan, const std::vector<std::int64_t>& chunks);

// With which chunks the participants are predicted to be least apart where they meet.
std::vector<std::int64_t> balanced_by_costs(const TrainJob& job);

struct Balanced {
  std::vector<std::int64_t> chunks;  // with which participants were least apart where they meet
  std::vector<Observation> seen;     // for the profile: what it knows need not be tried again
};

// A few steps are run with each shares of the search (tried_shares.h), then the best again, as long
// as the budget lasts. What is too short for two trials leaves the plan's chunks. `step`: what a
// step is predicted to take. No executor may be alive.
Balanced balanced_by_trials(const TrainJob& job, Seconds step, Seconds budget);

}  // namespace regatta
