#include "train/balance.h"

#include <algorithm>

#include "platform/distance.h"
#include "tasks/balance.h"
#include "tasks/rehearsed.h"
#include "train/rehearse.h"

namespace regatta {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t most_trials = 5;
constexpr double turn_seconds = 0.3;

Plan with_chunks(Plan plan, const std::vector<std::int64_t>& chunks) {
  DeviceGroup& group = plan.nodes.front().groups.front();
  group.chunks = chunks;
  group.lanes = static_cast<int>(chunks.size());
  return plan;
}

TriedShares measured(const TrainJob& job, const Plan& plan) {
  const std::vector<double> tasks = while_near([&] { return try_tasks(job, plan, turn_seconds); });
  const Blueprint blueprint = make_blueprint(job.graph, plan, numbers_of(job.recipe), true);
  return tried_shares(blueprint, lower(blueprint, Job::train), tasks);
}

}  // namespace

Balanced balance(const TrainJob& job, double step_seconds, Seconds budget) {
  Balanced found{groups_of(job.plan).front()->chunks, {}};
  if (job.recipe.accumulate > 1) return found;  // its batches are not steps to be looked at
  const Clock::time_point begin = Clock::now();
  const Seconds trial(trial_seconds(turn_seconds, step_seconds));
  const bool measures = budget > 2 * trial;
  std::vector<TriedShares> tried;
  std::optional<std::vector<std::int64_t>> next = found.chunks;
  while (next && tried.size() < most_trials) {
    const Plan plan = with_chunks(job.plan, *next);
    const std::string step = step_signature(job.graph, job.recipe, plan);
    std::optional<TriedShares> known;
    if (job.profile) known = recalled_shares(step, *next, *job.profile);
    if (!known) {
      if (!measures || Clock::now() - begin + trial > budget) break;
      known = measured(job, plan);
      std::ranges::move(observations_of(step, *known), std::back_inserter(found.seen));
    }
    tried.push_back(std::move(*known));
    next = next_shares(tried);
  }
  if (!tried.empty()) found.chunks = best_shares(tried).chunks;
  return found;
}

}  // namespace regatta
