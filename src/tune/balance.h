// Balancing workers by what real steps take them, on weights that are thrown away.
#pragma once

#include <cstdint>
#include <vector>

#include "profile/profile.h"
#include "train/job.h"

namespace regatta {

struct Balanced {
  std::vector<std::int64_t> chunks;  // with which workers were least apart where they meet
  std::vector<Observation> seen;     // for the profile: what it knows need not be tried again
};

// The chunks of all groups, one after the other, as the plan's.
void give_chunks(Plan& plan, const std::vector<std::int64_t>& chunks);

// Each worker of the plan, or its GPU, has a chunk. A few steps are run, samples are moved
// from the late to the early, and so on until that brings nothing more; then the best are looked at
// again, as long as the budget lasts. What is too short for two trials leaves the plan's chunks.
// `step`: what a step is predicted to take. No executor may be alive.
Balanced balance(const TrainJob& job, Seconds step, Seconds budget);

}  // namespace regatta
