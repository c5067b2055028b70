// Trying plans out: a few real steps of each, on weights that are thrown away.
#pragma once

#include <functional>
#include <vector>

#include "train/job.h"
#include "train/speed.h"
#include "tune/choose.h"

namespace regatta {

// Runs the plan for `seconds`, at least two steps, after warm-up; returns the speed of a step (with
// accumulation: of one micro-batch). No executor may be alive.
Speed try_out(const TrainJob& job, const Plan& plan, double seconds);

// Runs the plan for at least three steps; returns the median seconds of each task of a step.
std::vector<double> try_tasks(const TrainJob& job, const Plan& plan, double seconds);
// Seconds that a trial of `seconds` really takes if a step takes `step_seconds`.
double trial_seconds(double seconds, double step_seconds);

// The most promising candidates of a choice take turns; those that fall behind drop out. What was
// seen is for the profile: apply_stored_trials() and rank_by_trials() put the fastest first, and
// the next run need not try again. Returns nothing where there is nothing to decide, the budget is
// too small, or a GPU takes part. `on_turn` is called before each turn.
std::vector<Observation> try_candidates(const TrainJob& job, const Choice& choice, Seconds budget,
                                        const std::function<void()>& on_turn = {});

}  // namespace regatta
