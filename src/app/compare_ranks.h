// Predictions for a recorded run over several ranks, to be compared with its record.
#pragma once

#include <filesystem>

#include "report/compare.h"
#include "sim/simulate.h"
#include "train/job.h"

namespace regatta::app {

struct Prediction {
  sim::Simulated simulated;
  Planned planned;
  std::string remark = {};  // whose costs these are
};

// Needs a job whose plan is for several nodes. They are simulated with the links in the record and
// the costs of each rank's profile, from the run folder; where nothing was measured, those of the
// job's profile. `planned` plays each rank by itself.
Prediction predict_ranks(const TrainJob& job, const std::filesystem::path& run,
                         const trace::Record& measured, std::int64_t steps, std::uint64_t seed);

}  // namespace regatta::app
