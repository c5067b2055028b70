#include "tune/trials.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tune/contest.h"
#include "tune/measured_run.h"
#include "tune/trial_ranking.h"

namespace regatta {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t most_finalists = 8;  // three rounds of halving

// The finalists that were never tried, after the best of those that were: it is what they are
// compared with. None if all were.
std::vector<std::size_t> contestants(const Choice& choice,
                                     const std::vector<std::size_t>& finalists) {
  std::vector<std::size_t> untried;
  std::optional<std::size_t> best;
  for (const std::size_t i : finalists) {
    const Candidate& each = choice.candidates[i];
    if (!each.was_tried())
      untried.push_back(i);
    else if (!best || each.tried < choice.candidates[*best].tried)
      best = i;
  }
  if (best && !untried.empty()) untried.insert(untried.begin(), *best);
  return untried;
}

}  // namespace

Seconds longest_trials(std::optional<std::int64_t> steps, Seconds step) {
  constexpr Seconds longest{15};       // enough for all rounds of eight candidates at 60 ms a step
  constexpr double of_the_run = 0.03;  // the part of the run's predicted time that trials may take
  if (!steps) return longest;
  return std::min(longest, of_the_run * static_cast<double>(*steps) * step);
}

std::vector<Observation> try_candidates(const TrainJob& job, const Choice& choice, Seconds budget,
                                        const std::function<void()>& on_trial) {
  const Clock::time_point begin = Clock::now();
  const double trials = budget / whole_trial(choice.best().predicted);
  std::size_t most = most_finalists;
  while (most > 0 && static_cast<double>(measurements_of_contest(most)) > trials) --most;
  const std::vector<std::size_t> tried = contestants(choice, finalists(choice, most));
  ContestRules rules;
  rules.measure = [&](std::size_t i) {
    if (on_trial) on_trial();
    return Seconds(measure(job, choice.candidates[tried[i]].plan).step_s);
  };
  rules.time_left = [&] { return budget - (Clock::now() - begin); };
  std::vector<Seconds> times = contest(tried.size(), rules);
  std::vector<Observation> seen;
  for (std::size_t i = 0; i < tried.size(); ++i) {
    Candidate each = choice.candidates[tried[i]];
    each.tried = times[i];
    // A trial that took far longer than predicted may have been disturbed, so it is repeated.
    if (is_doubtful(each) && rules.time_left() > Seconds(0))
      each.tried = std::min(times[i], rules.measure(i));
    if (each.was_tried())
      seen.push_back({step_signature(job.graph, job.recipe, each.plan), 1, 1, each.tried.count()});
  }
  return seen;
}

void TrialNote::on_turn() {
  const Seconds passed = Clock::now() - begin_;
  char text[80];
  std::snprintf(text, sizeof text, "trying plans out: %.0f s of at most %.0f s", passed.count(),
                std::ceil(longest_.count()));
  progress_.note(text);
}

}  // namespace regatta
