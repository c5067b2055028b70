// A proven bound of a job's step on this machine.
#pragma once

#include <optional>

#include "train/job.h"

namespace regatta::app {

// No plan that uses this machine's cores has a shorter step, with whatever chunk sizes and teams
// were measured, as long as no task undercuts the lower end of its measured cost. None: the plan
// uses GPUs, or too little was measured here.
std::optional<double> step_bound_here(const TrainJob& job);

// Seconds that forward and backward of a step of the job's plan take all workers together, by lower
// ends: less than that was not measured.
double least_work_s(const TrainJob& job);

}  // namespace regatta::app
