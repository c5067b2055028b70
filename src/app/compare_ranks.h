// Predictions for a recorded run over several ranks, to be compared with its record.
#pragma once

#include "report/compare.h"
#include "sim/simulate.h"
#include "train/job.h"

namespace regatta::app {

struct Prediction {
  sim::Simulated simulated;
  Planned planned;
};

// Needs a job whose plan is for several nodes. They are simulated with the links in the record and
// the costs of the job's profile; `planned` plays each rank by itself.
Prediction predict_ranks(const TrainJob& job, const trace::Record& measured, std::int64_t steps,
                         std::uint64_t seed);

}  // namespace regatta::app
