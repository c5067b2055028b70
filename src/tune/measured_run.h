// What a typical step of a job really takes: time, energy, and where it goes.
#pragma once

#include <optional>
#include <vector>

#include "train/job.h"

namespace regatta {

struct Measured {
  double step_s = 0, energy_j = 0;             // of a typical step
  double kernels_s = 0;                        // of it, the mean time that a worker is in kernels
  double submission_s = 0;                     // wall time of the thread that submits the step
  std::vector<double> tasks = {};              // median seconds of each task, if they were watched
  std::optional<double> taken_by_others = {};  // share of the workers' CPU time; none: unknown
};

// A run of about so many seconds after it has settled, but of a few steps at least; again where
// CPUs were moved apart meanwhile. `watch_tasks` also times every task, which costs a little.
Measured measure(const TrainJob& job, double seconds, bool watch_tasks = false);

}  // namespace regatta
