// Batch norm by groups of samples: the same numbers on every plan. The truth is the reference
// kernels in double; a run may be three times as far from it as the same kernels in float are.
#include <gtest/gtest.h>

#include <cmath>

#include "graph/program.h"
#include "models/models.h"
#include "parity/formula.h"
#include "support/distance.h"
#include "support/executor_run.h"
#include "support/gpu_here.h"
#include "support/grouped.h"
#include "support/small_networks.h"

namespace regatta {
namespace {

struct Cut {
  std::vector<std::int64_t> chunks;  // one number: so many equal ones
  const char* segments;
  Reduction reduction = Reduction::slots;
  int team = 1;
  DeviceKind device = DeviceKind::cpu;
};

// With images of 64x64 the last layers have 2x2 pixels, so a group of two samples has 8 values a
// channel. With 32x32 it would have 2, which become 1 and -1 whatever they were: the gradient
// through them is only what rounding leaves of a difference, 0.3% off with any kernels in float.
Graph resnet18_of_pairs() {
  return grouped(fuse(build_model("resnet18", {.input = Shape{3, 64, 64}, .classes = 10})), 2);
}

// `live` samples on plans for batches of `batch`.
void expect_the_reference(const Graph& graph, std::int64_t batch, std::int64_t live,
                          const std::vector<Cut>& cuts) {
  const ReferenceResult<double> truth = reference_run(graph, make_input<double>(graph, live));
  const ReferenceResult<float> plain = reference_run(graph, make_input<float>(graph, live));
  const auto allowed = [](double own) { return std::max(3 * own, 1e-5); };
  const auto gradients = joined(truth.parameter_gradients);
  const auto states = joined(truth.states);
  for (const Cut& cut : cuts) {
    PlanOptions options;
    options.workers = 2;
    options.chunks = cut.chunks;
    options.segments = cut.segments;
    options.reduction = cut.reduction;
    options.team = cut.team;
    options.devices = {cut.device};
    const std::string plan = std::to_string(cut.chunks.size()) + " chunks, segments " +
                             cut.segments + ", team " + std::to_string(cut.team);
    const ExecutedRun run =
        execute(graph, plan_for(graph, batch, options), make_input<float>(graph, live), {}, 1);
    EXPECT_NEAR(run.losses[0], truth.loss,
                allowed(std::abs(plain.loss - truth.loss) / truth.loss) * truth.loss)
        << plan;
    EXPECT_LT(distance(joined(run.gradients), gradients),
              allowed(distance(joined(plain.parameter_gradients), gradients)))
        << plan;
    EXPECT_LT(distance(joined(run.states), states), allowed(distance(joined(plain.states), states)))
        << plan;
  }
}

const std::vector<Cut> cuts_of_eight{{{1}, "step"},
                                     {{1}, "op"},
                                     {{2}, "step"},
                                     {{4, 2, 2}, "op"},
                                     {{2, 6}, "step", Reduction::loop},
                                     {{2, 2, 4}, "2", Reduction::redux},
                                     {{1}, "step", Reduction::slots, 2}};

TEST(GroupedBatchNorm, IsTheSameOnEveryPlan) {
  expect_the_reference(resnet18_of_pairs(), 8, 8, cuts_of_eight);
}

// Residuals, relus, vectors and channels that do not fill a block.
TEST(GroupedBatchNorm, SuitsEverySmallNetwork) {
  int seen = 0;
  for (const SmallNetwork& network : small_networks()) {
    const Graph graph = build(network);
    if (granule_of(grouped(graph, 2)) == 1) continue;
    ++seen;
    SCOPED_TRACE(network.name);
    expect_the_reference(grouped(graph, 2), 8, 8, {cuts_of_eight[0], cuts_of_eight[3]});
  }
  EXPECT_GE(seen, 3);
}

// Groups of a full batch: 3, 3, 3, 2. Of the short ones: 3, 3, 1 and 3, 2.
TEST(GroupedBatchNorm, KeepsItsGroupsInAShortBatch) {
  const Graph graph = grouped(fuse(build_model("resnet18", {.input = Shape{3, 64, 64}})), 3);
  for (const std::int64_t live : {11, 7, 5})
    expect_the_reference(graph, 11, live, {{{1}, "step"}, {{3, 6, 2}, "step"}, {{6, 5}, "op"}});
}

TEST(GroupedBatchNorm, MayTakeEverySampleForItself) {
  const Graph graph = grouped(fuse(build_model("resnet18", {.input = Shape{3, 64, 64}})), 1);
  expect_the_reference(graph, 4, 4, {{{1}, "step"}, {{3, 1}, "step"}});
}

TEST(GroupedBatchNorm, IsTheSameOnAGpu) {
  if (!gpu_here()) GTEST_SKIP() << "no GPU here";
  Cut whole{{1}, "step"}, cut{{2, 4, 2}, "step"};
  whole.device = cut.device = DeviceKind::cuda;
  expect_the_reference(resnet18_of_pairs(), 8, 7, {whole, cut});
}

// One group's sums do not know of the other groups, and groups are added in the batch's order. The
// largest chunks are such that each convolution is computed by one algorithm in all plans.
TEST(GroupedBatchNorm, LeavesTheSameRunningStatisticsBitForBit) {
  const Graph graph =
      grouped(fuse(build_model("resnet20", {.input = Shape{3, 32, 32}, .classes = 10})), 2);
  const auto states = [&](std::vector<std::int64_t> chunks, const char* segments) {
    PlanOptions options;
    options.workers = 2;
    options.chunks = std::move(chunks);
    options.segments = segments;
    return execute(graph, plan_for(graph, 6, options), make_input<float>(graph, 6), {}, 1).states;
  };
  const Tensors<float> whole = states({1}, "step");
  EXPECT_TRUE(states({2, 4}, "step") == whole);
  EXPECT_TRUE(states({2, 2, 2}, "op") == whole);
}

TEST(GroupedBatchNorm, OfTheWholeBatchIsWhatWholeIs) {
  const Graph graph = fuse(build_model("resnet18", {.input = Shape{3, 32, 32}, .classes = 10}));
  const auto run = [&](const Graph& of) {
    return execute(of, plan_for(of, 6, {.chunks = {{1}}}), make_input<float>(of, 6), {}, 2);
  };
  const ExecutedRun whole = run(graph), one = run(grouped(graph, 6));
  EXPECT_EQ(whole.losses, one.losses);
  EXPECT_EQ(whole.parameters, one.parameters);
  EXPECT_LT(relative_distance(one.states[1], whole.states[1]), 1e-6);
}

}  // namespace
}  // namespace regatta
