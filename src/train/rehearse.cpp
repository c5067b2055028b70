#include "train/rehearse.h"

#include <algorithm>

#include "base/error.h"
#include "platform/distance.h"
#include "profile/robust.h"
#include "tasks/rehearsed.h"
#include "train/settled_steps.h"
#include "train/weights.h"

namespace regatta {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t fewest_steps = 4, fewest_steps_of_tasks = 6;
constexpr std::size_t most_finalists = 8;
constexpr int rounds = 8;
// By how much one may be behind the best and stay, after each round but the last. The best of many
// owes it to luck in part; the last rounds, which few live to see, tell how fast it really is.
constexpr double still_in[rounds - 1] = {1.2, 1.1, 1.1, 1.05, 1.05, 1.02, 1.02};
constexpr double turn_seconds = 0.12;
constexpr int encores = 3;
// Starting and ending a runtime, and until it has settled.
constexpr double between_turns = 0.05 + SettledSteps::settling_seconds;

struct Actor {
  std::size_t candidate;
  std::vector<double> taken = {};
  bool behind = false;

  // The middle one, of two the faster: what disturbs a turn makes it longer, never shorter.
  double seconds() const {
    std::vector<double> sorted = taken;
    std::ranges::sort(sorted);
    return sorted[(sorted.size() - 1) / 2];
  }
};

void run(const TrainJob& job, Executor& executor, SettledSteps& steps) {
  initialise_weights(executor, job.recipe.seed);
  Recipe still = job.recipe;
  still.optimizer.learning_rate = 0;  // however long it is tried, nothing runs away
  TrainGoal goal;
  goal.last_step = INT64_MAX;
  train(executor, still, job.data, nullptr, goal, steps);
}

// Who was fastest of many was lucky in part: turns that had no say in that tell by how much. All
// are taken to have been as lucky, so that they stay in order.
template <class Turn>
double encore(const std::vector<Actor>& actors, Clock::time_point until, const Turn& turn) {
  if (actors.size() < 2) return 1;
  const Actor& best = *std::ranges::min_element(actors, {}, &Actor::seconds);
  std::vector<double> taken;
  for (int i = 0; i < encores && Clock::now() < until; ++i) taken.push_back(turn(best));
  return taken.empty() ? 1 : median(taken) / best.seconds();
}

bool has_gpu(const Plan& plan) {
  return std::ranges::any_of(
      groups_of(plan), [](const DeviceGroup* group) { return group->kind != DeviceKind::cpu; });
}

}  // namespace

double try_out(const TrainJob& job, const Plan& plan, double seconds) {
  Executor executor(job.graph, plan, job.exec_options(true));
  SettledSteps steps(seconds, fewest_steps);
  run(job, executor, steps);
  return typical_seconds(steps.seconds()) / static_cast<double>(job.recipe.accumulate);
}

std::vector<double> try_tasks(const TrainJob& job, const Plan& plan, double seconds) {
  TaskMedians tasks;
  SettledSteps steps(seconds, fewest_steps_of_tasks);
  Executor executor(job.graph, plan, job.exec_options(true));
  watch_settled(executor, steps, tasks);
  run(job, executor, steps);
  executor.watch_no_more();
  return tasks.get();
}

double trial_seconds(double seconds, double step_seconds) {
  return std::max(seconds, static_cast<double>(fewest_steps_of_tasks) * step_seconds) +
         between_turns;
}

std::vector<Observation> rehearse(const TrainJob& job, Seconds budget) {
  const Choice& choice = *job.choice;
  if (has_gpu(job.plan)) return {};
  const Clock::time_point begin = Clock::now();
  const double turn =
      std::max(turn_seconds, static_cast<double>(fewest_steps) * choice.best().step_seconds) +
      between_turns;
  const auto seats = static_cast<std::size_t>(
      std::min(budget.count() / (2 * turn), static_cast<double>(most_finalists)));
  std::vector<Actor> actors;
  bool all_known = true;
  for (const std::size_t i : finalists(choice, seats)) {
    actors.push_back({i});
    all_known &= choice.candidates[i].rehearsed > 0;
  }
  if (all_known) return {};
  const auto turn_of = [&](const Actor& actor) {
    const Plan& plan = choice.candidates[actor.candidate].plan;
    return while_near([&] { return try_out(job, plan, turn_seconds); });
  };
  for (int round = 0; round < rounds; ++round) {
    const Seconds kept{round > 1 ? encores * turn : 0};
    if (round > 0 && Clock::now() - begin > budget - kept) break;
    double best = 1e30;
    for (Actor& actor : actors) {
      if (actor.behind) continue;
      actor.taken.push_back(turn_of(actor));
      best = std::min(best, actor.seconds());
    }
    if (round + 1 < rounds)
      for (Actor& actor : actors) actor.behind |= actor.seconds() > still_in[round] * best;
  }
  const auto until = begin + std::chrono::duration_cast<Clock::duration>(budget);
  const double unlucky = encore(actors, until, turn_of);
  std::vector<Observation> seen;
  for (const Actor& actor : actors)
    seen.push_back({step_signature(job.graph, job.recipe, choice.candidates[actor.candidate].plan),
                    1, 1, unlucky * actor.seconds()});
  return seen;
}

}  // namespace regatta
