// Trying plans out: a few real steps of each, on weights that are thrown away.
#pragma once

#include <functional>
#include <vector>

#include "train/job.h"
#include "train/speed.h"

namespace regatta {

// Of a step, or of one of the batches that add up to it, when it has settled: of so many seconds,
// but two steps at least. No executor may be alive.
Speed try_out(const TrainJob& job, const Plan& plan, double seconds);

// Likewise: the median seconds of each task of a step. Three steps at least.
std::vector<double> try_tasks(const TrainJob& job, const Plan& plan, double seconds);
// How long that takes, if a step takes so long.
double trial_seconds(double seconds, double step_seconds);

// The most promising candidates of the job's choice take turns; those that fall behind drop out.
// What was seen is for the profile: recall() and settle() put the fastest first, and the next run
// need not try again. Returns nothing where there is nothing to decide, the budget is too small, or
// a GPU takes part. `on_turn` is called before each turn.
std::vector<Observation> rehearse(const TrainJob& job, Seconds budget,
                                  const std::function<void()>& on_turn = {});

}  // namespace regatta
