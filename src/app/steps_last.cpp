#include "app/steps_last.h"

#include <algorithm>

#include "tasks/placement.h"
#include "tasks/play.h"

namespace regatta::app {
namespace {

// Whether a task is of parameters, not of a chunk or a meeting.
bool of_parameters(const Task& task) {
  const Phase phase = task.actions.front().phase;
  return !task.on_host && !computed_chunk(task) &&
         (phase == Phase::reduce || phase == Phase::measure || phase == Phase::clip ||
          phase == Phase::update || phase == Phase::pack);
}

}  // namespace

std::optional<Plan> with_steps_last(const Graph& graph, const Recipe& recipe,
                                    const Platform& platform, const sim::Profiles& profiles,
                                    const Plan& plan) {
  // An order is for training steps of one batch.
  if (groups_of(plan).size() != 1 || !plan.stages.empty() || recipe.accumulate > 1)
    return std::nullopt;
  const DeviceGroup& group = *groups_of(plan).front();
  if (group.kind != DeviceKind::cpu || group.workers < 2 ||
      std::ssize(group.chunks) != group.workers || !waits_at_gates(plan))
    return std::nullopt;
  Plan made = plan;
  made.pace_s = 0;
  made.placement = Placement::hybrid;
  made.order.clear();
  sim::PreparedFleet fleet(graph, recipe, platform, profiles);
  fleet.follow(made);
  const sim::RankKind& kind = fleet.fleet().kinds.front();
  const std::vector<PlayedTask> played = play(*kind.blueprint, *kind.list, *kind.costs).tasks;
  const std::vector<WorkerPower> powers = powers_of(made);
  std::vector<double> done(powers.size(), 0);  // by worker, with what it was given so far
  std::vector<RanAt> tasks;
  for (std::size_t t = 0; t < played.size(); ++t) {
    tasks.push_back({played[t].worker, played[t].start});
    if (of_parameters(kind.list->tasks[t])) continue;
    double& last = done[static_cast<std::size_t>(played[t].worker)];
    last = std::max(last, played[t].end);
  }
  // In the list's order, in which none comes before what it waits for.
  for (std::size_t t = 0; t < played.size(); ++t) {
    const Task& task = kind.list->tasks[t];
    if (!of_parameters(task)) continue;
    const double seconds = kind.costs->of(task, group.workers).seconds;
    const auto end_on = [&](std::size_t w) { return done[w] + powers[w].slow * seconds; };
    std::size_t first = 0;
    for (std::size_t w = 1; w < done.size(); ++w)
      if (end_on(w) < end_on(first)) first = w;
    tasks[t] = {static_cast<int>(first), done[first]};
    done[first] = end_on(first);
  }
  made.placement = Placement::fixed;
  made.order = order_of(tasks, powers.size());
  return made;
}

}  // namespace regatta::app
