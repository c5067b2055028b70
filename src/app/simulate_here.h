// A job simulated on this machine, on SimGrid.
#pragma once

#include "sim/simulate.h"
#include "train/job.h"

namespace regatta::app {

// By the job's profile; without one, by what is stored of this machine. The record's metadata tell
// the peak of memory. Throws InputError for what cannot be simulated.
sim::Simulated simulate_here(const TrainJob& job, std::int64_t steps, std::uint64_t seed = 1);

}  // namespace regatta::app
