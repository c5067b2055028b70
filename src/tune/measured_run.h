// What a typical step of a plan really takes: time, energy, and where it goes. Runs real steps on
// weights that are thrown away.
#pragma once

#include <optional>
#include <vector>

#include "train/job.h"

namespace regatta {

struct Measured {
  double step_s = 0, energy_j = 0;  // of a typical step; with accumulation, of one micro-batch
  double kernels_s = 0;             // of it, the mean time that a worker is in kernels
  double submission_s = 0;          // wall time of the thread that submits the step
  std::vector<double> tasks = {};   // median seconds of each task, if they were watched
  std::optional<double> taken_by_others = {};  // share of the workers' CPU time; none: unknown
};

// How long a trial measures: 40 periods of the system's scheduler.
inline constexpr Seconds trial_time{0.12};

// Measures steps for so long after they have settled, three steps at least; again where CPUs were
// moved apart meanwhile. `watch_tasks` also times every task, which costs a little. No executor may
// be alive.
Measured measure(const TrainJob& job, const Plan& plan, Seconds time = trial_time,
                 bool watch_tasks = false);

// What a trial takes in all, if a step takes `step`.
Seconds whole_trial(Seconds step);

}  // namespace regatta
