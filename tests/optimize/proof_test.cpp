// The bound holds whatever the solver says.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "optimize/generated_problems.h"

namespace regatta::optimize {
namespace {

// Minimise x + 2 y with x + y >= 4, x - y >= -2, both from 0 to 10: x = 4 costs 4.
LinearProgram small() {
  LinearProgram program;
  program.add_variable(1, 0, 10);
  program.add_variable(2, 0, 10);
  program.add_row({{0, 1}, {1, 1}}, 4);
  program.add_row({{0, 1}, {1, -1}}, -2);
  return program;
}

TEST(ProvenMinimum, OfRightDualsIsTheMinimum) {
  EXPECT_EQ(proven_minimum(small(), solve(small()).duals), 4);
}

TEST(ProvenMinimum, OfWrongDualsIsLowerNeverHigher) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const std::vector<double>& duals : std::vector<std::vector<double>>{{},
                                                                           {0, 0},
                                                                           {-5, -7},
                                                                           {1},
                                                                           {0.5, 0.25},
                                                                           {1.0000001, 0},
                                                                           {2, 3},
                                                                           {1e9, 0},
                                                                           {0, 1e9},
                                                                           {inf, -inf},
                                                                           {std::nan(""), 1},
                                                                           {1, 0, 17, 4}})
    EXPECT_LE(proven_minimum(small(), duals), 4);
  EXPECT_LT(proven_minimum(small(), std::vector<double>{1e9, 0}), -1e9) << "and far too high ones";
}

TEST(ProvenMinimum, OfDisturbedDualsStaysBelowTheOptimumOfPlans) {
  std::mt19937 random(7);
  for (std::uint32_t number = 0; number < 150; ++number) {
    const Problem problem = generated(number, {3, 4, 5});
    const auto best = best_by_trying_all(problem, Objective::energy);
    if (!best) continue;
    double disturbed = std::numeric_limits<double>::infinity();
    for (const Scenario& scenario : scenarios(problem)) {
      const LinearProgram program = relaxation(problem, scenario, Quantity::energy_j, {}, {0, 1e6});
      std::vector<double> duals = solve(program).duals;
      for (double& dual : duals) dual = dual * (static_cast<double>(random() % 300) - 50) / 100;
      disturbed = std::min(disturbed, rounded_down(proven_minimum(program, duals)));
    }
    EXPECT_LE(disturbed, best->energy_j) << "problem " << number;
  }
}

TEST(RoundedDown, IsNeverAbove) {
  EXPECT_EQ(rounded_down(Rational(3)), 3);
  EXPECT_LE(Rational(rounded_down(Rational(1, 3))), Rational(1, 3));
  EXPECT_LE(Rational(rounded_down(Rational(-1, 3))), Rational(-1, 3));
}

}  // namespace
}  // namespace regatta::optimize
