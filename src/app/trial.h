// A job measured in this process and simulated beside it: what the benches of predictions are made
// of.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "profile/profile.h"
#include "tune/calibrate.h"
#include "tune/measured_run.h"

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
// Takes as long as `options` say, or as steps on whole chunks do.
void learn_costs(Profile& profile, const TrainJob& job, CalibrationOptions options);

struct Predicted {
  double step_s = 0, energy_j = 0;
  double kernels_s = 0, submission_s = 0;  // as in Measured
  std::vector<double> tasks;               // median seconds of each task
  double apart = 0;                        // see apart() of tasks/meetings.h
};
// By simulation.
Predicted predict(const TrainJob& job);

// Seconds of all workers in a step, by what tasks mainly do.
std::map<std::string, double> by_phase(const TrainJob& job, const std::vector<double>& tasks);

}  // namespace regatta::app
