// Trying plans out: a few real steps of each, on weights that are thrown away.
#pragma once

#include <functional>
#include <vector>

#include "train/job.h"
#include "train/speed.h"
#include "tune/choose.h"

namespace regatta {

// Runs the plan for `time`, three steps at least, after warm-up; returns the speed of a step (with
// accumulation: of one micro-batch). No executor may be alive.
Speed try_out(const TrainJob& job, const Plan& plan, Seconds time);

// The same, but returns the median seconds of each task of a step.
std::vector<double> try_tasks(const TrainJob& job, const Plan& plan, Seconds time);

// What a trial that measures for so long takes in all, if a step takes `step`.
Seconds trial_time(Seconds measured, Seconds step);

// Finds the fastest of the most promising candidates of a choice (contest.h). What was seen is for
// the profile: apply_stored_trials() and rank_by_trials() put the fastest first, and
// the next run need not try again. Returns nothing where there is nothing to decide, the budget is
// too small, or a GPU takes part. `on_trial` is called before each trial.
std::vector<Observation> try_candidates(const TrainJob& job, const Choice& choice, Seconds budget,
                                        const std::function<void()>& on_trial = {});

}  // namespace regatta
