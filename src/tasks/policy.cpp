#include "tasks/policy.h"

#include <algorithm>
#include <tuple>

#include "tasks/dependencies.h"

namespace regatta {

std::size_t pick(std::span<const ReadyTask> ready, int worker) {
  // Smaller is sooner.
  const auto urgency = [worker](const ReadyTask& task) {
    return std::tuple(-task.priority, task.list, -task.rank, task.home != worker, task.order);
  };
  return static_cast<std::size_t>(std::ranges::min_element(ready, {}, urgency) - ready.begin());
}

std::vector<double> ranks(const TaskList& list, const TaskCosts& costs, int busy) {
  std::vector<double> after(list.tasks.size(), 0);
  Dependencies dependencies;
  const std::vector<Dependencies::Edge> edges = dependencies.follow(list, 0, 0);
  auto edge = edges.rbegin();
  for (std::size_t t = list.tasks.size(); t-- > 0;) {
    after[t] += costs.of(list.tasks[t], busy).seconds;
    for (; edge != edges.rend() && edge->first == static_cast<std::int64_t>(t); ++edge) {
      double& before = after[static_cast<std::size_t>(edge->second)];
      before = std::max(before, after[t]);
    }
  }
  return after;
}

}  // namespace regatta
