#include "tune/balance.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "exec/task_medians.h"
#include "plan/shares.h"
#include "profile/timings.h"
#include "train/memory_check.h"
#include "tune/contest.h"
#include "tune/measured_run.h"
#include "tune/stored_profile.h"
#include "tune/trials.h"

namespace regatta {
namespace {

using Clock = std::chrono::steady_clock;

ChunkSizes chunks_in(const Plan& plan) {
  ChunkSizes all;
  for (const Chunk& chunk : chunks_of(plan)) all.push_back(chunk.capacity);
  return all;
}

TrainJob with_chunks(TrainJob job, const ChunkSizes& chunks) {
  give_chunks(job.plan, chunks);
  return job;
}

// Shares of the batch in proportion to `speeds`.
ChunkSizes divided_by(const std::vector<double>& speeds, const ChunkSizes& batch,
                      std::int64_t granule) {
  return shares_by_speed(speeds, std::accumulate(batch.begin(), batch.end(), std::int64_t{0}),
                         granule);
}

ChunkSizes between(const ChunkSizes& a, const ChunkSizes& b, std::int64_t granule) {
  std::vector<double> middle;
  for (std::size_t i = 0; i < a.size(); ++i) middle.push_back(static_cast<double>(a[i] + b[i]) / 2);
  return divided_by(middle, a, granule);
}

// Nothing if no better shares than those tried are to be expected.
std::optional<ChunkSizes> next_shares(std::span<const TriedShares> tried, std::int64_t granule) {
  const auto known = [&](const ChunkSizes& chunks) {
    return std::ranges::find(tried, chunks, &TriedShares::chunks) != tried.end();
  };
  const TriedShares& best = best_shares(tried);
  ChunkSizes next = balanced_chunks(best.chunks, best.seconds, granule);
  // Costs differ from layer to layer: what evens out a whole step may be too much at most meetings.
  while (known(next)) {
    ChunkSizes nearer = between(best.chunks, next, granule);
    if (nearer == next || nearer == best.chunks) return std::nullopt;
    next = std::move(nearer);
  }
  return next;
}

// Signatures under which the profile keeps a step with shares: its way, its wait, then each chunk.
std::vector<std::string> signatures_of(const std::string& step, std::size_t chunks) {
  std::vector<std::string> all{step + " way", step + " wait"};
  for (std::size_t i = 0; i < chunks; ++i) all.push_back(step + " chunk " + std::to_string(i));
  return all;
}

// `times`: seconds by task, or costs.
template <class Times>
TriedShares shares_of(const Blueprint& blueprint, const TaskList& list, const Times& times) {
  TriedShares tried{chunks_in(blueprint.plan), chunk_seconds(blueprint, list, times)};
  for (const Meeting& meeting : meetings(blueprint, list, times)) {
    tried.way += meeting.last;
    tried.waited += meeting.last - meeting.first;
  }
  return tried;
}

// Shares of the batch that real steps are run with, once or again.
struct SharesOnTrial {
  TrainJob job;
  TaskMedians measured = {};

  std::string signature() const { return step_signature(job.graph, job.recipe, job.plan); }
  // Runs some more steps. Tells what tasks typically took in all measurements so far: what one of
  // them saw by chance must not decide.
  TriedShares run() {
    measured.add(measure(job, job.plan, trial_time, /*watch_tasks=*/true).tasks);
    const PricedStep step = priced_step(job);
    return tried_shares(step.blueprint(), step.list(), measured.get());
  }
};

}  // namespace

void give_chunks(Plan& plan, const ChunkSizes& chunks) {
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

void balance_by_costs(TrainJob& job) {
  const auto predicted = [&](const ChunkSizes& chunks) {
    const PricedStep step = priced_step(with_chunks(job, chunks));
    return std::optional(tried_shares(step.blueprint(), step.list(), step.costs()));
  };
  const std::vector<TriedShares> found =
      search_shares(chunks_in(job.plan), granule_of(job.graph), predicted);
  give_chunks(job.plan, best_shares(found).chunks);
}

void balance_by_trials(TrainJob& job, Seconds step, Seconds budget, Keep keep) {
  TrialNote note(budget);
  if (job.recipe.accumulate > 1) return;  // its batches are no steps
  if (chunks_in(job.plan).size() < 2) return;
  note.on_turn();
  const Clock::time_point begin = Clock::now();
  const Seconds trial = whole_trial(step);
  const auto time_for_one = [&] {
    return budget > 2 * trial && Clock::now() - begin + trial <= budget;
  };
  std::vector<SharesOnTrial> trials;
  const auto try_out = [&](const ChunkSizes& chunks) -> std::optional<TriedShares> {
    SharesOnTrial fresh{with_chunks(job, chunks)};
    if (!fits_here(fresh.job, fresh.job.plan)) return std::nullopt;
    trials.push_back(std::move(fresh));
    if (job.profile)
      if (auto known = stored_shares(trials.back().signature(), chunks, *job.profile)) return known;
    if (!time_for_one()) return std::nullopt;
    return trials.back().run();
  };
  std::vector<TriedShares> tried =
      search_shares(chunks_in(job.plan), granule_of(job.graph), try_out);
  if (tried.empty()) return;
  // The best of several may owe it to chance: it is measured again, until the best one has had
  // enough measurements.
  while (tried.size() > 1 && time_for_one()) {
    const auto best = static_cast<std::size_t>(&best_shares(tried) - tried.data());
    const std::size_t measurements = trials[best].measured.count();
    if (measurements == 0 || measurements == confirmations) break;
    tried[best] = trials[best].run();
  }
  give_chunks(job.plan, best_shares(tried).chunks);
  std::vector<Observation> seen;  // what the profile knew already is not told again
  for (std::size_t i = 0; i < tried.size(); ++i)
    if (trials[i].measured.count() > 0)
      std::ranges::move(observations_of(trials[i].signature(), tried[i]), std::back_inserter(seen));
  if (keep == Keep::in_profile && !seen.empty()) learn(job, seen);
}

ChunkSizes balanced_chunks(const ChunkSizes& chunks, const std::vector<double>& seconds,
                           std::int64_t granule) {
  std::vector<double> speeds;
  for (std::size_t i = 0; i < chunks.size(); ++i)
    speeds.push_back(static_cast<double>(chunks[i]) / std::max(seconds[i], shortest_timing));
  return divided_by(speeds, chunks, granule);
}

double TriedShares::apart_in_all() const {
  if (seconds.empty()) return 0;
  const auto [least, most] = std::ranges::minmax(seconds);
  return most > 0 ? 1 - least / most : 0;
}

TriedShares tried_shares(const Blueprint& blueprint, const TaskList& list,
                         std::span<const double> seconds) {
  return shares_of(blueprint, list, seconds);
}
TriedShares tried_shares(const Blueprint& blueprint, const TaskList& list, const TaskCosts& costs) {
  return shares_of(blueprint, list, costs);
}

const TriedShares& best_shares(std::span<const TriedShares> tried) {
  return *std::ranges::min_element(tried, {}, &TriedShares::apart);
}

std::vector<TriedShares> search_shares(
    ChunkSizes chunks, std::int64_t granule,
    const std::function<std::optional<TriedShares>(const ChunkSizes&)>& try_out) {
  std::vector<TriedShares> tried;
  for (std::optional next = std::move(chunks); next; next = next_shares(tried, granule)) {
    std::optional<TriedShares> seen = try_out(*next);
    if (!seen) break;
    tried.push_back(std::move(*seen));
  }
  return tried;
}

std::vector<Observation> observations_of(const std::string& step, const TriedShares& tried) {
  std::vector<double> seconds{tried.way, tried.waited};
  seconds.insert(seconds.end(), tried.seconds.begin(), tried.seconds.end());
  const std::vector<std::string> signatures = signatures_of(step, tried.seconds.size());
  std::vector<Observation> seen;
  for (std::size_t i = 0; i < seconds.size(); ++i)
    seen.push_back({signatures[i], 1, 1, std::max(seconds[i], shortest_timing)});
  return seen;
}

std::optional<TriedShares> stored_shares(const std::string& step, const ChunkSizes& chunks,
                                         const Profile& profile) {
  std::vector<double> seconds;
  for (const std::string& signature : signatures_of(step, chunks.size())) {
    const Fit* fit = profile.find(signature);
    if (!fit) return std::nullopt;
    seconds.push_back(fit->at(1, 1).seconds);
  }
  return TriedShares{chunks, {seconds.begin() + 2, seconds.end()}, seconds[0], seconds[1]};
}

}  // namespace regatta
