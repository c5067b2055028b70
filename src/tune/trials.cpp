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

// To settle, and as many to be measured.
constexpr std::int64_t few_steps = 2, few_steps_of_tasks = 3;
constexpr std::size_t most_finalists = 8;
constexpr double measured_seconds = 0.12;  // of a turn
// Starting and ending a runtime, and until it has settled.
constexpr double between_turns = 0.05 + SettledSteps::settling_seconds;

Speed run(const TrainJob& job, Executor& executor, SettledSteps& steps) {
  initialise_roughly(executor, job.recipe.seed);
  Recipe still = job.recipe;
  still.optimizer.learning_rate = 0;  // however long it is tried, nothing runs away
  TrainGoal goal;
  goal.last_step = INT64_MAX;
  return train(executor, still, job.data, nullptr, goal, steps);
}

// Those that were never tried, after the best of those that were: it is what they are compared
// with. Nobody if all were.
std::vector<std::size_t> contestants(const Choice& choice,
                                     const std::vector<std::size_t>& finalists) {
  std::vector<std::size_t> actors;
  std::optional<std::size_t> best;
  for (const std::size_t i : finalists) {
    const Candidate& each = choice.candidates[i];
    if (!each.was_tried())
      actors.push_back(i);
    else if (!best || each.tried < choice.candidates[*best].tried)
      best = i;
  }
  if (best && !actors.empty()) actors.insert(actors.begin(), *best);
  return actors;
}

bool has_gpu(const Plan& plan) {
  return std::ranges::any_of(
      groups_of(plan), [](const DeviceGroup* group) { return group->kind != DeviceKind::cpu; });
}

}  // namespace

Speed try_out(const TrainJob& job, const Plan& plan, double seconds) {
  Executor executor(job.graph, plan, job.exec_options(true));
  SettledSteps steps(seconds, few_steps, few_steps);
  Speed speed = run(job, executor, steps);
  speed.typical_step_s =
      typical_seconds(steps.seconds()) / static_cast<double>(job.recipe.accumulate);
  return speed;
}

std::vector<double> try_tasks(const TrainJob& job, const Plan& plan, double seconds) {
  TaskMedians tasks;
  SettledSteps steps(seconds, few_steps_of_tasks, few_steps_of_tasks);
  Executor executor(job.graph, plan, job.exec_options(true));
  watch_settled(executor, steps, tasks);
  run(job, executor, steps);
  executor.watch_no_more();
  return tasks.get();
}

double trial_seconds(double seconds, double step_seconds) {
  return std::max(seconds, static_cast<double>(2 * few_steps_of_tasks) * step_seconds) +
         between_turns;
}

std::vector<Observation> try_candidates(const TrainJob& job, const Choice& choice, Seconds budget,
                                        const std::function<void()>& on_turn) {
  if (has_gpu(job.plan)) return {};
  const Clock::time_point begin = Clock::now();
  // Three turns each, on average: the best has most of them.
  const double turns =
      budget.count() / trial_seconds(measured_seconds, choice.best().predicted.count());
  const auto seats =
      static_cast<std::size_t>(std::min(turns / 3, static_cast<double>(most_finalists)));
  const std::vector<std::size_t> actors = contestants(choice, finalists(choice, seats));
  if (actors.empty()) return {};
  const auto candidate = [&](std::size_t actor) -> const Candidate& {
    return choice.candidates[actors[actor]];
  };
  ContestRules rules;
  rules.turn = [&](std::size_t actor) {
    if (on_turn) on_turn();
    return while_near(
        [&] { return try_out(job, candidate(actor).plan, measured_seconds).typical_step_s; });
  };
  rules.seconds_left = [&] { return Seconds(budget - (Clock::now() - begin)).count(); };
  std::vector<double> seconds = contest(actors.size(), rules);
  // What took far longer than predicted may have been disturbed: another look tells.
  for (std::size_t i = 0; i < actors.size(); ++i) {
    Candidate tried = candidate(i);
    tried.tried = Seconds(seconds[i]);
    if (is_doubtful(tried) && rules.seconds_left() > 0)
      seconds[i] = std::min(seconds[i], rules.turn(i));
  }
  std::vector<Observation> seen;
  for (std::size_t i = 0; i < actors.size(); ++i)
    if (seconds[i] > 0)
      seen.push_back({step_signature(job.graph, job.recipe, candidate(i).plan), 1, 1, seconds[i]});
  return seen;
}

}  // namespace regatta
