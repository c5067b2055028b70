// Bound <= optimum <= plan, over thousands of small problems whose optimum is found by trying every
// plan.
#include <gtest/gtest.h>

#include <algorithm>

#include "optimize/generated_problems.h"
#include "optimize/search.h"

namespace regatta::optimize {
namespace {

constexpr double rounding = 1e-9;  // the model adds in another order than the trial
constexpr std::uint32_t cases = 2500;

double bound_of(const Problem& problem, Objective objective, double optimum) {
  switch (objective) {
    case Objective::time:
      return lower_bound(problem, Quantity::step_s, {});
    case Objective::energy:
      return lower_bound(problem, Quantity::energy_j, {});
    case Objective::edp:
      return edp_bound(problem, {}, 3 * optimum);  // of a plan that is not the best
    case Objective::cost:
      return lower_bound(problem, Quantity::cost, {});
  }
  return 0;
}

class Optimum : public testing::TestWithParam<Objective> {};

TEST_P(Optimum, IsFoundAndNeverBelowTheBound) {
  const std::uint32_t count = GetParam() == Objective::edp ? cases / 50 : cases;
  int found = 0;
  for (std::uint32_t number = 0; number < count; ++number) {
    Problem problem = generated(number, {});
    if (number % 2 == 1) name_updates(problem);
    const std::optional<Outcome> best = best_by_trying_all(problem, GetParam());
    const Found plans = search(problem, GetParam(), {}, 1);
    ASSERT_TRUE(plans.every_choice);
    ASSERT_EQ(best.has_value(), !plans.best.empty()) << "problem " << number;
    if (!best) continue;
    ++found;
    const double optimum = value_of(*best, GetParam());
    const double plan = value_of(plans.best.front().outcome, GetParam());
    EXPECT_NEAR(plan / std::max(optimum, 1e-300), optimum > 0 ? 1 : 0, rounding)
        << "problem " << number;
    EXPECT_LE(bound_of(problem, GetParam(), optimum), optimum * (1 + rounding))
        << "problem " << number;
  }
  EXPECT_GT(found, static_cast<int>(count) * 8 / 10);
}

INSTANTIATE_TEST_SUITE_P(Of, Optimum,
                         testing::Values(Objective::time, Objective::energy, Objective::edp,
                                         Objective::cost),
                         [](const auto& each) { return std::string(objective_name(each.param)); });

TEST(OptimumWithLimits, IsFoundWithinThem) {
  int tight = 0;
  for (std::uint32_t number = 0; number < 600; ++number) {
    const Problem problem = generated(number, {3, 1, 6});
    const auto fastest = best_by_trying_all(problem, Objective::time);
    const auto leanest = best_by_trying_all(problem, Objective::energy);
    if (!fastest || !leanest) continue;
    Limits limits;
    limits.seconds = (0.5 * fastest->step_s + 0.5 * leanest->step_s) *
                     static_cast<double>(problem.steps()) * (1 + rounding);
    const auto best = best_by_trying_all(problem, Objective::energy, limits);
    ASSERT_TRUE(best);
    const Found plans = search(problem, Objective::energy, limits, 1);
    EXPECT_EQ(excess(problem, plans.best.front().outcome, limits), 0);
    EXPECT_NEAR(plans.best.front().outcome.energy_j / best->energy_j, 1, rounding) << number;
    EXPECT_LE(lower_bound(problem, Quantity::energy_j, limits), best->energy_j * (1 + rounding));
    tight += best->energy_j > leanest->energy_j * (1 + 1e-6) ? 1 : 0;
    limits.seconds =
        lower_bound(problem, Quantity::step_s, {}) * 0.99 * static_cast<double>(problem.steps());
    EXPECT_FALSE(best_by_trying_all(problem, Objective::energy, limits)) << number;
  }
  EXPECT_GT(tight, 50) << "the deadline should matter in some";
}

TEST(OptimumWithPowerCap, IsFoundWithinIt) {
  int tight = 0;
  for (std::uint32_t number = 0; number < 600; ++number) {
    const Problem problem = generated(number, {3, 1, 6});
    const auto fastest = best_by_trying_all(problem, Objective::time);
    if (!fastest) continue;
    Limits limits;
    limits.watts = 0.8 * fastest->peak_watts;
    const auto best = best_by_trying_all(problem, Objective::time, limits);
    const double bound = lower_bound(problem, Quantity::step_s, limits);
    if (!best) continue;
    ++tight;
    const Found plans = search(problem, Objective::time, limits, 1);
    EXPECT_NEAR(plans.best.front().outcome.step_s / best->step_s, 1, rounding) << number;
    EXPECT_LE(bound, best->step_s * (1 + rounding)) << number;
  }
  EXPECT_GT(tight, 50);
}

}  // namespace
}  // namespace regatta::optimize
