// Fronts of time against energy and money.
#include "optimize/front.h"

#include <gtest/gtest.h>

#include "optimize/generated_problems.h"

namespace regatta::optimize {
namespace {

TEST(Front, FallsFromTheFastestToTheLeanestAndKeepsAboveItsBound) {
  int longer = 0;
  for (std::uint32_t number = 0; number < 150; ++number) {
    const Problem problem = generated(number, {4, 3, 8});
    for (const Objective against : {Objective::energy, Objective::cost}) {
      const std::vector<FrontPoint> points = front(problem, against, {}, 8);
      const auto fastest = best_by_trying_all(problem, Objective::time);
      if (!fastest) {
        EXPECT_TRUE(points.empty());
        continue;
      }
      ASSERT_FALSE(points.empty());
      EXPECT_NEAR(points.front().choice.outcome.step_s / fastest->step_s, 1, 1e-9);
      EXPECT_NEAR(points.back().value, value_of(*best_by_trying_all(problem, against), against),
                  1e-9 * points.back().value);
      for (std::size_t i = 0; i < points.size(); ++i) {
        EXPECT_LE(points[i].bound, points[i].value * (1 + 1e-9)) << number;
        if (i == 0) continue;
        EXPECT_GT(points[i].choice.outcome.step_s, points[i - 1].choice.outcome.step_s) << number;
        EXPECT_LT(points[i].value, points[i - 1].value) << number;
        EXPECT_LE(points[i].bound, points[i - 1].bound * (1 + 1e-9)) << "more time, no more joules";
      }
      longer += points.size() > 2 ? 1 : 0;
    }
  }
  EXPECT_GT(longer, 20);
}

// The least joules for a given time, as the relaxation has it, are a convex function of that time
// as long as the same nodes may take part.
TEST(Front, OfTheBoundIsConvexOnOneNode) {
  for (std::uint32_t number = 0; number < 60; ++number) {
    Problem problem = generated(number, {2, 1, 8});
    problem.nodes.resize(1);
    problem.nodes.front().count = 1;
    problem.nodes.front().domain = 0;
    const double fastest = lower_bound(problem, Quantity::step_s, {});
    if (!std::isfinite(fastest)) continue;
    const auto energy = [&](double stretch) {
      Limits limits;
      limits.seconds = fastest * stretch * static_cast<double>(problem.steps());
      return lower_bound(problem, Quantity::energy_j, limits);
    };
    for (double stretch = 1.1; stretch < 2; stretch += 0.2)
      EXPECT_LE(energy(stretch),
                0.5 * (energy(stretch - 0.05) + energy(stretch + 0.05)) * (1 + 1e-9))
          << "problem " << number << " at " << stretch;
  }
}

TEST(EnergyPlans, NeverUseMoreJoulesThanTimePlans) {
  for (std::uint32_t number = 0; number < 500; ++number) {
    const Problem problem = generated(number, {});
    const Found fast = search(problem, Objective::time, {}, 1);
    if (fast.best.empty()) continue;
    const Found lean = search(problem, Objective::energy, {}, 1);
    EXPECT_LE(lean.best.front().outcome.energy_j, fast.best.front().outcome.energy_j * (1 + 1e-12));
    EXPECT_LE(fast.best.front().outcome.step_s, lean.best.front().outcome.step_s * (1 + 1e-12));
  }
}

}  // namespace
}  // namespace regatta::optimize
