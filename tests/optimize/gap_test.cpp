// How far the bound is below the best plan, over generated problems. What it prints is the table of
// docs/optimizer.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "optimize/generated_problems.h"
#include "optimize/search.h"

namespace regatta::optimize {
namespace {

struct Row {
  const char* what;
  Size size;
  bool certain;  // costs have no interval
};

std::vector<double> gaps(const Row& row, Objective objective, std::uint32_t count) {
  std::vector<double> found;
  for (std::uint32_t number = 0; number < count; ++number) {
    Problem problem = generated(number, row.size);
    if (row.certain)
      for (NodeKind& node : problem.nodes)
        for (Device& device : node.devices)
          for (DeviceState& state : device.states) state.least = state.certain;
    const Found plans = search(problem, objective, {}, 1);
    if (plans.best.empty()) continue;
    const double bound = lower_bound(
        problem, objective == Objective::time ? Quantity::step_s : Quantity::energy_j, {});
    found.push_back(value_of(plans.best.front().outcome, objective) / bound - 1);
  }
  std::ranges::sort(found);
  return found;
}

TEST(Gap, OfTheBestPlanIsSmallWhereSamplesAreMany) {
  const Row rows[]{{"batch to 8, 1 segment, with intervals", {4, 1, 8}, false},
                   {"batch to 8, 1 segment, certain costs", {4, 1, 8}, true},
                   {"batch to 8, to 6 segments, certain costs", {4, 6, 8}, true},
                   {"batch to 512, 1 segment, certain costs", {4, 1, 512}, true}};
  std::printf("%-44s %-8s %8s %8s %8s %8s\n", "problems", "of", "median", "75%", "90%", "most");
  for (const Row& row : rows)
    for (const Objective objective : {Objective::time, Objective::energy}) {
      const std::vector<double> found = gaps(row, objective, row.size.batch > 8 ? 200 : 1000);
      ASSERT_GT(found.size(), 150u);
      const auto at = [&](double part) {
        return 100 * found[static_cast<std::size_t>(part * static_cast<double>(found.size() - 1))];
      };
      std::printf("%-44s %-8s %7.1f%% %7.1f%% %7.1f%% %7.1f%%\n", row.what,
                  std::string(objective_name(objective)).c_str(), at(0.5), at(0.75), at(0.9),
                  at(1));
      EXPECT_GE(found.front(), -1e-9);
      // Whole samples matter less and less.
      EXPECT_LE(at(0.5), row.size.batch > 8 ? 10 : 60);
    }
}

}  // namespace
}  // namespace regatta::optimize
