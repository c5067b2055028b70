// A job measured in this process and simulated beside it: what the benches of predictions are made
// of.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "profile/profile.h"
#include "train/calibrate.h"
#include "train/job.h"

namespace regatta::app {

struct TrialSetting {
  std::string model, input;  // "3x64x64"
  std::int64_t batch = 32;
  int workers = 1;
};
// As a setting is trained on made-up images, with a rule of thumb for what `plan` leaves open.
TrainJob trial_job(const TrialSetting& setting, const PlanOptions& plan);

// Adds what the work of a job costs now. A bench begins with an empty profile and learns again
// before each round of measuring: a machine drifts, and what disturbs one session is outvoted.
// Takes as long as `options` say, or as steps on whole chunks do; the layout is the usual one.
void learn_costs(Profile& profile, const TrainJob& job, CalibrationOptions options);

struct Measured {
  double step_s = 0, energy_j = 0;  // of a typical step
  double kernels_s = 0;             // of it, that a worker is in kernels, on average
  double submission_s = 0;          // of the thread or the workers that submit it, by the clock
  std::vector<double> tasks = {};   // the median seconds of each, if they were looked at
  std::optional<double> taken_by_others = {};  // share of the workers' CPU time; none: unknown
};
// A run of about so long after it has settled, but of a few steps at least; again where CPUs were
// moved apart. `watch` also looks at every task, which costs a little.
Measured measure(const TrainJob& job, double seconds, bool watch = false);

struct Predicted {
  double step_s = 0, energy_j = 0;
  double kernels_s = 0, submission_s = 0;  // as above
  std::vector<double> tasks;               // likewise
  double apart = 0;
};
Predicted predict(const TrainJob& job);

// Seconds of all workers in a step, by what tasks mainly do.
std::map<std::string, double> by_phase(const TrainJob& job, const std::vector<double>& tasks);

}  // namespace regatta::app
