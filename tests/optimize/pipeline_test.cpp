// Pipelines: the best by trying every one, and the bound below all of them.
#include "optimize/pipeline.h"

#include <gtest/gtest.h>

#include <functional>

#include "optimize/generated_problems.h"

namespace regatta::optimize {
namespace {

// Every order of devices and every place of the borders.
void each_pipeline(const Problem& problem,
                   const std::function<void(const std::vector<StageUse>&)>& visit) {
  std::vector<StageUse> stages;
  const std::function<void(std::size_t)> extend = [&](std::size_t first) {
    if (first == problem.segments.size()) {
      if (stages.size() > 1) visit(stages);
      return;
    }
    for (int k = 0; k < static_cast<int>(problem.nodes.size()); ++k) {
      const NodeKind& node = problem.nodes[static_cast<std::size_t>(k)];
      std::int64_t taken = 0;
      for (const StageUse& stage : stages) taken += stage.kind == k ? 1 : 0;
      if (taken >= node.count * node.devices[0].units) continue;
      for (int s = 0; s < static_cast<int>(node.devices[0].states.size()); ++s)
        for (std::size_t last = first; last < problem.segments.size(); ++last) {
          stages.push_back({k, 0, s, first, last});
          extend(last + 1);
          stages.pop_back();
        }
    }
  };
  extend(0);
}

TEST(Pipelines, AreTheBestByTryingAllAndNeverBelowTheBound) {
  int found = 0;
  for (std::uint32_t number = 0; number < 400; ++number) {
    const Problem problem = generated(number, {4, 6, 8});
    for (const Objective objective : {Objective::time, Objective::energy}) {
      double best = std::numeric_limits<double>::infinity();
      each_pipeline(problem, [&](const std::vector<StageUse>& stages) {
        best = std::min(
            best, value_of(outcome_of(problem, stages, chunks_for(problem.batch, stages.size())),
                           objective));
      });
      const std::vector<Pipeline> pipelines = best_pipelines(problem, objective, {}, 4, 1);
      ASSERT_EQ(std::isfinite(best), !pipelines.empty()) << number;
      if (pipelines.empty()) continue;
      ++found;
      EXPECT_NEAR(value_of(pipelines.front().outcome, objective) / best, 1, 1e-9) << number;
      const double bound = lower_bound(
          problem, objective == Objective::time ? Quantity::step_s : Quantity::energy_j, {});
      EXPECT_LE(bound, best * (1 + 1e-9)) << number;
    }
  }
  EXPECT_GT(found, 300);
}

// Stages that several devices share, each a part of the samples: the best that could be made of
// them, if nothing waited but for the sample before it.
TEST(Pipelines, WithReplicatedStagesAreNeverBelowTheBoundEither) {
  std::mt19937 random(11);
  for (std::uint32_t number = 0; number < 300; ++number) {
    const Problem problem = generated(number, {4, 6, 8});
    // What links add is left out, and what memory forbids: the bound must hold even so.
    Problem work = problem;
    for (NodeKind& node : work.nodes) {
      node.link_bandwidth = 1e30;
      node.devices[0].most_samples = work.batch;
    }
    for (Domain& domain : work.domains) domain.uplink_bandwidth = 1e30;
    const double bound = lower_bound(work, Quantity::step_s, {});
    if (!std::isfinite(bound)) continue;
    std::vector<std::pair<int, double>> devices;  // node kind, seconds it is busy
    for (int k = 0; k < static_cast<int>(problem.nodes.size()); ++k)
      for (std::int64_t i = 0; i < problem.nodes[static_cast<std::size_t>(k)].count; ++i)
        devices.emplace_back(k, 0);
    for (int trial = 0; trial < 20; ++trial) {
      for (auto& device : devices) device.second = 0;
      std::vector<std::uint32_t> stage_of(problem.segments.size());
      for (std::size_t g = 1; g < stage_of.size(); ++g)
        stage_of[g] = stage_of[g - 1] + static_cast<std::uint32_t>(random() % 2);
      const auto seed = static_cast<std::uint32_t>(random());
      double step = 0;
      for (std::int64_t sample = 0; sample < problem.batch; ++sample) {
        double chain = 0;  // a sample goes through one segment after the other
        for (std::size_t g = 0; g < problem.segments.size(); ++g) {
          // Each sample is computed by one of the devices of its stage.
          std::mt19937 choice(seed + 131 * stage_of[g] + static_cast<std::uint32_t>(sample));
          auto& [kind, busy] = devices[choice() % devices.size()];
          const Device& device = problem.nodes[static_cast<std::size_t>(kind)].devices[0];
          busy += device.states[0].seconds[g].at(1);
          chain += device.states[0].seconds[g].at(1);
        }
        step = std::max(step, chain);
      }
      for (const auto& [kind, busy] : devices) step = std::max(step, busy);
      EXPECT_LE(bound, step * (1 + 1e-9)) << number;
    }
  }
}

TEST(Pipelines, PayWhereGradientsAreLargeAndBordersSmall) {
  // Two alike, 8 samples, 4 segments of 1 s a sample each. Gradients take 100 s on the link.
  Problem problem;
  problem.batch = problem.images = 8;
  problem.segments.assign(4, {1e8, 10, 1});
  NodeKind node;
  node.count = 2;
  node.link_bandwidth = 4e6;
  Device device;
  DeviceState state;
  state.seconds.assign(4, {0, 1});
  state.least.seconds = state.seconds;
  state.least.joules.assign(4, {0, 0});
  device.states = {state};
  node.devices = {device};
  problem.nodes = {node};
  const std::vector<Pipeline> best = best_pipelines(problem, Objective::time, {}, 4, 1);
  ASSERT_EQ(best.size(), 1u);
  EXPECT_EQ(best[0].stages[0].last, 1u) << "two segments each";
  EXPECT_EQ(best[0].chunks, 8);
  // Eight chunks of one sample, 2 s in each stage: 2 + 2 + 7 * 2, and the border's 5 us each.
  EXPECT_NEAR(best[0].outcome.step_s, 18, 1e-4);
  EXPECT_LE(lower_bound(problem, Quantity::step_s, {}), 16 + 1e-9);
}

}  // namespace
}  // namespace regatta::optimize
