#include "tune/balance.h"

#include <algorithm>

#include "profile/robust.h"
#include "train/memory_check.h"
#include "tune/contest.h"
#include "tune/measured_run.h"
#include "tune/stored_profile.h"
#include "tune/trial_ranking.h"
#include "tune/tried_shares.h"

namespace regatta {
namespace {

using Clock = std::chrono::steady_clock;
using Chunks = std::vector<std::int64_t>;

TrainJob with_chunks(const TrainJob& job, const Chunks& chunks) {
  TrainJob other = job;
  give_chunks(other.plan, chunks);
  return other;
}

Chunks chunks_in(const Plan& plan) {
  Chunks all;
  for (const Chunk& chunk : chunks_of(plan)) all.push_back(chunk.capacity);
  return all;
}

// Steps with some shares, looked at once or again.
class Trials {
 public:
  explicit Trials(TrainJob job) : job_(std::move(job)) {}

  // By tasks as they typically were in all measurements: what one of them saw by chance must not
  // decide.
  TriedShares look() {
    measured_.push_back(measure(job_, job_.plan, trial_time, /*watch_tasks=*/true).tasks);
    std::vector<double> tasks;
    for (std::size_t t = 0; t < measured_.front().size(); ++t) {
      std::vector<double> seconds;
      for (const std::vector<double>& each : measured_) seconds.push_back(each[t]);
      tasks.push_back(median(std::move(seconds)));
    }
    const PricedStep step = priced_step(job_);
    return tried_shares(step.blueprint(), step.list(), tasks);
  }
  std::optional<TriedShares> stored() const {
    if (!job_.profile) return std::nullopt;
    return stored_shares(signature(), chunks_in(job_.plan), *job_.profile);
  }
  std::string signature() const { return step_signature(job_.graph, job_.recipe, job_.plan); }
  std::size_t measurements() const { return measured_.size(); }

 private:
  TrainJob job_;
  std::vector<std::vector<double>> measured_;  // seconds, by task
};

}  // namespace

void give_chunks(Plan& plan, const std::vector<std::int64_t>& chunks) {
  auto next = chunks.begin();
  for (DeviceGroup& group : plan.nodes.front().groups) {
    const auto end = next + std::ssize(group.chunks);
    group.chunks.assign(next, end);
    // More chunks than workers share lanes: otherwise each chunk would take memory of its own.
    if (std::ssize(group.chunks) <= group.workers)
      group.lanes = static_cast<int>(group.chunks.size());
    next = end;
  }
}

std::vector<std::int64_t> balanced_by_costs(const TrainJob& job) {
  const auto predicted = [&](const Chunks& chunks) {
    const PricedStep step = priced_step(with_chunks(job, chunks));
    TriedShares shares{.chunks = chunks,
                       .seconds = chunk_seconds(step.blueprint(), step.list(), step.costs())};
    shares.add(step.meetings());
    return std::optional(std::move(shares));
  };
  return best_shares(search_shares(chunks_in(job.plan), granule_of(job.graph), predicted)).chunks;
}

Balanced balanced_by_trials(const TrainJob& job, Seconds step, Seconds budget) {
  Balanced found{chunks_in(job.plan), {}};
  if (job.recipe.accumulate > 1) return found;  // its batches are not steps to be looked at
  const Clock::time_point begin = Clock::now();
  const Seconds trial = whole_trial(step);
  const bool measures = budget > 2 * trial;
  const auto time_for_one = [&] { return measures && Clock::now() - begin + trial <= budget; };
  std::vector<Trials> trials;  // one for each division into shares that was tried
  const auto look = [&](const Chunks& chunks) -> std::optional<TriedShares> {
    TrainJob other = with_chunks(job, chunks);
    if (!fits_here(other, other.plan)) return std::nullopt;
    Trials& fresh = trials.emplace_back(std::move(other));
    if (std::optional<TriedShares> known = fresh.stored()) return known;
    if (!time_for_one()) return std::nullopt;
    return fresh.look();
  };
  std::vector<TriedShares> tried = search_shares(found.chunks, granule_of(job.graph), look);
  if (tried.empty()) return found;
  // The best of several may owe it to chance: it is measured again, until the best one has had
  // enough measurements.
  while (tried.size() > 1 && time_for_one()) {
    const auto best = static_cast<std::size_t>(&best_shares(tried) - tried.data());
    const std::size_t measurements = trials[best].measurements();
    if (measurements == 0 || measurements == confirmations) break;
    tried[best] = trials[best].look();
  }
  for (std::size_t i = 0; i < tried.size(); ++i)
    if (trials[i].measurements() > 0)
      std::ranges::move(observations_of(trials[i].signature(), tried[i]),
                        std::back_inserter(found.seen));
  found.chunks = best_shares(tried).chunks;
  return found;
}

}  // namespace regatta
