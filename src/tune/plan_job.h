// tune/: everything that measures costs, tries plans out and chooses one, before a run begins.
// This header is the way of a plan from start to end.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/job.h"
#include "tune/choose.h"
#include "tune/worker_shares.h"

namespace regatta {

// What a plan is made of, beside JobOptions::plan.
struct TuneOptions {
  // Segments, chunks, teams and the number of workers are chosen by measured costs and by trials,
  // but for what is given. Only CPUs have a choice, and none with --deterministic: there recipe and
  // groups decide. Otherwise a rule of thumb cuts the batch.
  bool by_costs = true;
  // Measuring and trials may take a part of the run that JobOptions::epochs or steps asks for;
  // otherwise as long as they need for any run.
  bool for_this_run = false;
  std::optional<WorkerShares> shares = {};  // a chunk for each CPU worker
  std::vector<std::string> slow = {};       // see slow_workers
  std::optional<Placement> placement = {};  // default: dynamic, or what shares ask for
  bool suggests_recompute = false;  // where a batch is refused that --recompute auto makes fit
};

struct PlannedJob {
  TrainJob job;
  std::optional<Choice> choice;             // none: the plan was not chosen by costs
  std::optional<PlanOptions> options = {};  // that the plan was made with; none: read from a file
};

// Opens data and model, gets costs, chooses, tries out, applies what the user fixed, and checks.
// Says on standard error when it takes time to measure or to try. Throws InputError.
PlannedJob plan_job(const JobOptions& options, const TuneOptions& tuning);

// The share of a predicted time that must rest on measurements for it to count as known.
inline constexpr double known_enough = 0.8;

// Whether `profile` knows what a step costs a worker with a team of so many threads.
bool knows_team(const TrainJob& job, PlanOptions options,
                const std::shared_ptr<const Profile>& profile, int team);

// Places the tasks of the job's plan; a fixed order comes from playing its list.
void place_tasks(TrainJob& job, Placement placement);

}  // namespace regatta
