#include "optimize/front.h"

#include <algorithm>
#include <cmath>

namespace regatta::optimize {
namespace {

std::optional<Choice> best(const Problem& problem, Objective objective, const Limits& limits) {
  Found found = search(problem, objective, limits, 1);
  if (found.best.empty() || excess(problem, found.best.front().outcome, limits) > 0)
    return std::nullopt;
  return std::move(found.best.front());
}

}  // namespace

std::vector<FrontPoint> front(const Problem& problem, Objective against, const Limits& limits,
                              int points) {
  const std::optional<Choice> fastest = best(problem, Objective::time, limits);
  const std::optional<Choice> leanest = best(problem, against, limits);
  if (!fastest || !leanest) return {};
  const auto steps = static_cast<double>(problem.steps());
  const Quantity quantity = against == Objective::cost ? Quantity::cost : Quantity::energy_j;
  const double first = fastest->outcome.step_s;
  const double last = std::max(first, leanest->outcome.step_s);
  std::vector<Choice> found{*fastest, *leanest};
  for (int i = 0; i < points - 1 && last > first; ++i) {
    Limits within = limits;
    // The last figure of the deadline must not decide.
    within.seconds =
        steps * first * std::pow(last / first, static_cast<double>(i) / (points - 1)) * (1 + 1e-12);
    if (std::optional<Choice> choice = best(problem, against, within))
      found.push_back(std::move(*choice));
  }
  std::ranges::stable_sort(found, {}, [&](const Choice& each) {
    return std::pair(each.outcome.step_s, value_of(each.outcome, against));
  });
  std::vector<FrontPoint> front;
  for (Choice& choice : found) {
    const double value = value_of(choice.outcome, against);
    if (!front.empty() && !(value < front.back().value)) continue;
    Limits as_fast = limits;
    as_fast.seconds = steps * choice.outcome.step_s;
    front.push_back({std::move(choice), value, lower_bound(problem, quantity, as_fast)});
  }
  return front;
}

}  // namespace regatta::optimize
