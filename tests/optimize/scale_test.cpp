// Many nodes: the search is no longer of all choices, so its plans are held against the bound.
#include <gtest/gtest.h>

#include <algorithm>

#include "optimize/generated_problems.h"
#include "optimize/search.h"

namespace regatta::optimize {
namespace {

// Up to four kinds, each of dozens to hundreds of nodes on a fast network, a hundred samples for
// each on average.
Problem many_nodes(std::uint32_t number) {
  Problem problem = generated(number, {4, 1, 8});
  std::mt19937 random(number);
  std::int64_t nodes = 0;
  for (NodeKind& node : problem.nodes) {
    node.count = 30 + static_cast<std::int64_t>(random() % 400);
    node.link_bandwidth = 1e12;
    node.domain = 0;
    for (Device& device : node.devices) {
      device.most_samples = 100'000;
      for (DeviceState& state : device.states) state.least = state.certain;
    }
    nodes += node.count;
  }
  problem.domains.resize(1);
  problem.batch = problem.images = 100 * nodes;
  return problem;
}

TEST(ManyNodes, PlansAreNearTheBound) {
  for (const Objective objective : {Objective::time, Objective::energy}) {
    std::vector<double> gaps;
    for (std::uint32_t number = 0; number < 20; ++number) {
      const Problem problem = many_nodes(number);
      const Found found = search(problem, objective, {}, 1);
      ASSERT_FALSE(found.best.empty()) << number;
      const double bound = lower_bound(
          problem, objective == Objective::time ? Quantity::step_s : Quantity::energy_j, {});
      gaps.push_back(value_of(found.best.front().outcome, objective) / bound - 1);
      EXPECT_GE(gaps.back(), -1e-9) << number;
    }
    std::ranges::sort(gaps);
    std::printf("%s: median gap %.2f%%, 90%% %.2f%%, most %.2f%%\n",
                std::string(objective_name(objective)).c_str(), 100 * gaps[10], 100 * gaps[18],
                100 * gaps.back());
    EXPECT_LE(gaps[10], 0.02) << "half of them within 2%";
  }
}

TEST(ManyNodes, TheSameQuestionHasTheSameAnswer) {
  const Problem problem = many_nodes(0);
  const Found one = search(problem, Objective::energy, {}, 3);
  const Found two = search(problem, Objective::energy, {}, 3);
  ASSERT_EQ(one.best.size(), two.best.size());
  for (std::size_t i = 0; i < one.best.size(); ++i) {
    EXPECT_EQ(one.best[i].uses, two.best[i].uses);
    EXPECT_EQ(one.best[i].outcome.energy_j, two.best[i].outcome.energy_j);
  }
}

}  // namespace
}  // namespace regatta::optimize
