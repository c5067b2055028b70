#include "tune/balance.h"

#include <algorithm>

#include "platform/distance.h"
#include "profile/robust.h"
#include "tune/trial_ranking.h"
#include "tune/trials.h"
#include "tune/tried_shares.h"

namespace regatta {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t most_shares = 5, most_measurements = 3;
constexpr Seconds measured_time{0.3};

Plan with_chunks(Plan plan, const std::vector<std::int64_t>& chunks) {
  give_chunks(plan, chunks);
  return plan;
}

// Steps with some shares, looked at once or again.
class Trials {
 public:
  Trials(const TrainJob& job, Plan plan) : job_(job), plan_(std::move(plan)) {}

  // By tasks as they typically were in all measurements: what one of them saw by chance must not
  // decide.
  TriedShares look() {
    measured_.push_back(measure_undisturbed([&] { return try_tasks(job_, plan_, measured_time); }));
    std::vector<double> tasks;
    for (std::size_t t = 0; t < measured_.front().size(); ++t) {
      std::vector<double> seconds;
      for (const std::vector<double>& each : measured_) seconds.push_back(each[t]);
      tasks.push_back(median(std::move(seconds)));
    }
    const PricedStep step(job_.graph, job_.recipe, plan_, job_.profile);
    return tried_shares(step.blueprint(), step.list(), tasks);
  }
  std::string signature() const { return step_signature(job_.graph, job_.recipe, plan_); }
  std::size_t measurements() const { return measured_.size(); }

 private:
  const TrainJob& job_;
  Plan plan_;
  std::vector<std::vector<double>> measured_;  // seconds, by task
};

}  // namespace

void give_chunks(Plan& plan, const std::vector<std::int64_t>& chunks) {
  auto next = chunks.begin();
  for (DeviceGroup& group : plan.nodes.front().groups) {
    const auto end = next + std::ssize(group.chunks);
    group.chunks.assign(next, end);
    group.lanes = static_cast<int>(group.chunks.size());
    next = end;
  }
}

Balanced balance(const TrainJob& job, Seconds step, Seconds budget) {
  Balanced found;
  for (const Chunk& chunk : chunks_of(job.plan)) found.chunks.push_back(chunk.capacity);
  if (job.recipe.accumulate > 1) return found;  // its batches are not steps to be looked at
  const Clock::time_point begin = Clock::now();
  const Seconds trial = trial_time(measured_time, step);
  const bool measures = budget > 2 * trial;
  const auto time_for_one = [&] { return measures && Clock::now() - begin + trial <= budget; };
  std::vector<TriedShares> tried;
  std::vector<Trials> trials;  // of each
  std::optional<std::vector<std::int64_t>> next = found.chunks;
  while (next && tried.size() < most_shares) {
    Trials fresh(job, with_chunks(job.plan, *next));
    std::optional<TriedShares> known;
    if (job.profile) known = recalled_shares(fresh.signature(), *next, *job.profile);
    if (!known) {
      if (!time_for_one()) break;
      known = fresh.look();
    }
    tried.push_back(std::move(*known));
    trials.push_back(std::move(fresh));
    next = next_shares(tried, granule_of(job.graph));
  }
  // The best of several was lucky, too: it is looked at again, and whoever is the best then.
  while (!tried.empty()) {
    const auto best = static_cast<std::size_t>(&best_shares(tried) - tried.data());
    const std::size_t measurements = trials[best].measurements();
    if (tried.size() == 1 || measurements == 0 || measurements == most_measurements ||
        !time_for_one())
      break;
    tried[best] = trials[best].look();
  }
  for (std::size_t i = 0; i < tried.size(); ++i)
    if (trials[i].measurements() > 0)
      std::ranges::move(observations_of(trials[i].signature(), tried[i]),
                        std::back_inserter(found.seen));
  if (!tried.empty()) found.chunks = best_shares(tried).chunks;
  return found;
}

}  // namespace regatta
