#include "tasks/policy.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace regatta {

namespace {

// Chunks differ by a sample or two; data at hand is worth more than such a lead.
constexpr double nearly = 0.95;
constexpr double rounding = 1e-6;  // relative error of times that were added in another order

}  // namespace

std::size_t pick(std::span<const ReadyTask> ready, int worker) {
  // Smaller is sooner.
  const auto urgency = [](const ReadyTask& task) {
    return std::tuple(task.list, -task.rank, task.order);
  };
  const auto first = std::ranges::min_element(ready, {}, urgency);
  if (first->home == worker) return static_cast<std::size_t>(first - ready.begin());
  auto best = first;
  for (auto task = ready.begin(); task != ready.end(); ++task)
    if (task->home == worker && task->list == first->list && task->rank >= nearly * first->rank &&
        (best == first || urgency(*task) < urgency(*best)))
      best = task;
  return static_cast<std::size_t>(best - ready.begin());
}

bool leaves(const Pace& pace, std::size_t task, int worker, double work, double time) {
  // Joules for what a worker at full speed computes in a second; the number decides between equals.
  const auto price = [&](std::size_t w) {
    return std::pair(pace.workers[w].slow * pace.workers[w].watts, w);
  };
  time *= 1 + rounding;
  const double seconds = pace.seconds[task];
  // The workers that need less: the seconds of work they can do, and their largest slowness.
  double room = 0, slowest = 0;
  for (std::size_t w = 0; w < pace.workers.size(); ++w) {
    if (price(w) >= price(static_cast<std::size_t>(worker))) continue;
    const double slow = pace.workers[w].slow;
    room += seconds > 0 ? std::floor(time / (slow * seconds)) * seconds : work;  // whole tasks
    slowest = std::max(slowest, slow);
  }
  return slowest > 0 && room >= work && time >= slowest * pace.ranks[task];
}

std::vector<double> ranks(std::vector<double> seconds, std::span<const Dependencies::Edge> edges) {
  std::vector<double> after(seconds.size(), 0);
  auto edge = edges.rbegin();
  for (std::size_t t = seconds.size(); t-- > 0;) {
    after[t] += seconds[t];
    for (; edge != edges.rend() && edge->first == static_cast<std::int64_t>(t); ++edge) {
      double& before = after[static_cast<std::size_t>(edge->second)];
      before = std::max(before, after[t]);
    }
  }
  return after;
}

std::vector<double> ranks(const TaskList& list, const TaskCosts& costs, int busy) {
  std::vector<double> seconds;
  for (const Task& task : list.tasks) seconds.push_back(costs.of(task, busy).seconds);
  Dependencies dependencies;
  return ranks(std::move(seconds), dependencies.follow(list, 0, 0));
}

}  // namespace regatta
