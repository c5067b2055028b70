// What is predicted of a recorded run over several ranks.
#pragma once

#include "report/compare.h"
#include "sim/simulate.h"
#include "train/job.h"

namespace regatta::app {

struct Prediction {
  sim::Simulated simulated;
  Planned planned;
};

// The job's plan is for several nodes. They are simulated with the links that the record tells and
// the costs of the job's profile; planned is each rank by itself.
Prediction predict_ranks(const TrainJob& job, const trace::Record& measured, std::int64_t steps,
                         std::uint64_t seed);

}  // namespace regatta::app
