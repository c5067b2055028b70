// The job that regatta train carries out: a new one by flags, one of a plan file or of a recorded
// run, or one that goes on with a run.
#pragma once

#include "app/train_flags.h"
#include "data/safetensors.h"
#include "train/checkpoint_policy.h"
#include "train/loop.h"
#include "tune/plan_job.h"

namespace regatta::app {

struct AskedRun {
  PlannedJob planned;
  TrainGoal goal;
  CheckpointPolicy policy;
};

// `app` tells which flags were given; `init` holds the weights of --init, or nothing. Its plan may
// be for several ranks, and is to be checked by require_runnable when it is what this process runs.
// A plan file for several nodes is refused unless this process is one of several `ranks`. Throws
// InputError.
AskedRun asked_run(const CLI::App& app, const TrainFlags& flags, const TensorFile& init,
                   bool ranks);

}  // namespace regatta::app
