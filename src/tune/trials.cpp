#include "tune/trials.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "platform/distance.h"
#include "train/weights.h"
#include "tune/contest.h"
#include "tune/settled_steps.h"
#include "tune/trial_ranking.h"

namespace regatta {
namespace {

using Clock = std::chrono::steady_clock;

// Steps until a run has settled, and as many to be measured: the fewest that have a median.
constexpr std::int64_t few_steps = 3;
constexpr Seconds measured_time{0.12};     // of a trial: 40 periods of the system's scheduler
constexpr std::size_t most_finalists = 8;  // three rounds of halving
// Starting and ending a runtime, and until it has settled.
constexpr Seconds between_trials = Seconds(0.05) + SettledSteps::settling_time;

Speed run(const TrainJob& job, Executor& executor, SettledSteps& steps) {
  initialise_roughly(executor, job.recipe.seed);
  Recipe still = job.recipe;
  still.optimizer.learning_rate = 0;  // however long it is tried, nothing runs away
  TrainGoal goal;
  goal.last_step = INT64_MAX;
  return train(executor, still, job.data, nullptr, goal, steps);
}

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

Speed try_out(const TrainJob& job, const Plan& plan, Seconds time) {
  Executor executor(job.graph, plan, job.exec_options(true));
  SettledSteps steps(time, steps_to_settle(plan, few_steps), few_steps);
  Speed speed = run(job, executor, steps);
  speed.typical_step_s =
      typical_seconds(steps.seconds()) / static_cast<double>(job.recipe.accumulate);
  return speed;
}

std::vector<double> try_tasks(const TrainJob& job, const Plan& plan, Seconds time) {
  TaskMedians tasks;
  SettledSteps steps(time, steps_to_settle(plan, few_steps), few_steps);
  Executor executor(job.graph, plan, job.exec_options(true));
  watch_settled(executor, steps, tasks);
  run(job, executor, steps);
  executor.watch_no_more();
  return tasks.get();
}

Seconds trial_time(Seconds measured, Seconds step) {
  return std::max(measured, static_cast<double>(2 * few_steps) * step) + between_trials;
}

std::vector<Observation> try_candidates(const TrainJob& job, const Choice& choice, Seconds budget,
                                        const std::function<void()>& on_trial) {
  const Clock::time_point begin = Clock::now();
  const double trials = budget / trial_time(measured_time, choice.best().predicted);
  std::size_t most = most_finalists;
  while (most > 0 && static_cast<double>(measurements_of_contest(most)) > trials) --most;
  const std::vector<std::size_t> tried = contestants(choice, finalists(choice, most));
  ContestRules rules;
  rules.measure = [&](std::size_t i) {
    if (on_trial) on_trial();
    const Plan& plan = choice.candidates[tried[i]].plan;
    return Seconds(
        measure_undisturbed([&] { return try_out(job, plan, measured_time).typical_step_s; }));
  };
  rules.time_left = [&] { return budget - (Clock::now() - begin); };
  std::vector<Seconds> times = contest(tried.size(), rules);
  // What took far longer than predicted may have been disturbed: another look tells.
  for (std::size_t i = 0; i < tried.size(); ++i) {
    Candidate again = choice.candidates[tried[i]];
    again.tried = times[i];
    if (is_doubtful(again) && rules.time_left() > Seconds(0))
      times[i] = std::min(times[i], rules.measure(i));
  }
  std::vector<Observation> seen;
  for (std::size_t i = 0; i < tried.size(); ++i)
    if (times[i] > Seconds(0))
      seen.push_back({step_signature(job.graph, job.recipe, choice.candidates[tried[i]].plan), 1, 1,
                      times[i].count()});
  return seen;
}

}  // namespace regatta
