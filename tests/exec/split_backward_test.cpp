// Weight gradients in tasks of their own, run by StarPU: the same bits as without them.
#include <gtest/gtest.h>

#include "backends/cpu/cpu_backend.h"
#include "models/models.h"
#include "parity/formula.h"
#include "support/executed_parity.h"
#include "support/executor_run.h"
#include "tasks/task_list.h"

namespace regatta {
namespace {

constexpr int steps = 3;
const ReferenceSgd sgd{.learning_rate = 0.02, .momentum = 0.9, .weight_decay = 1e-4};

void expect_same_bits(const Graph& graph, std::int64_t batch, Plan plan,
                      Precision precision = Precision::fp32) {
  SCOPED_TRACE(to_json(plan, graph).dump());
  const ReferenceInput<float> input = make_input<float>(graph, batch);
  plan.backward = Backward::whole;
  const ExecutedRun whole = execute(graph, plan, input, sgd, steps, precision);
  plan.backward = Backward::split;
  const ExecutedRun split = execute(graph, plan, input, sgd, steps, precision);
  EXPECT_TRUE(split.losses == whole.losses);
  EXPECT_TRUE(split.gradients == whole.gradients);
  EXPECT_TRUE(split.states == whole.states);
  EXPECT_TRUE(split.parameters == whole.parameters);
}

class SplitBackwardBits : public testing::TestWithParam<const char*> {};

TEST_P(SplitBackwardBits, AreThoseOfAWholeBackward) {
  const bool residual = std::string(GetParam()) == "resnet20";
  const Graph graph = fuse(residual ? build_model("resnet20", {.input = Shape{3, 16, 16}})
                                    : build_model(GetParam()));
  for (const Reduction reduction : {Reduction::slots, Reduction::loop})
    for (const std::int64_t chunks : {1, 2, 3})
      for (const char* segments : {"step", "block", "op"})
        for (const bool gather : {true, false}) {
          Plan plan = plan_for(graph, 7,
                               {.workers = 2,
                                .chunks = std::vector{chunks},
                                .segments = segments,
                                .reduction = reduction,
                                .deterministic = true});
          plan.gather_phases = gather;
          expect_same_bits(graph, 7, plan);
        }
}

TEST_P(SplitBackwardBits, StayWhenChunksShareALaneAndWorkersHaveTeams) {
  const Graph graph = fuse(build_model(GetParam(), {.input = Shape{3, 16, 16}, .classes = 10}));
  Plan plan = plan_for(graph, 9, {.workers = 3, .chunks = std::vector{2L, 4L, 3L}});
  plan.nodes.front().groups.front().lanes = 2;
  plan.nodes.front().groups.front().team = 2;
  plan.bucket_bytes = 4096;
  expect_same_bits(graph, 9, plan);
}

TEST_P(SplitBackwardBits, AreThoseOfAWholeBackwardInBf16) {
  if (const std::string why = cpu::hindrance(Precision::bf16); !why.empty()) GTEST_SKIP() << why;
  const Graph graph = fuse(build_model(GetParam(), {.input = Shape{3, 16, 16}, .classes = 10}));
  for (const std::int64_t chunks : {1, 3})
    expect_same_bits(graph, 7, plan_for(graph, 7, {.workers = 2, .chunks = std::vector{chunks}}),
                     Precision::bf16);
}

INSTANTIATE_TEST_SUITE_P(Models, SplitBackwardBits, testing::Values("lenet5", "resnet20"),
                         [](const auto& each) { return std::string(each.param); });

// One worker computes all weight gradients at the very end of the step, the last first, when every
// arena has been used for all of backward: what they read must still be there.
TEST(SplitBackward, WhatWeightGradientsReadLivesUntilTheEndOfTheStep) {
  const Graph graph = fuse(build_model("resnet20", {.input = Shape{3, 16, 16}}));
  Plan plan = plan_for(graph, 7, {.workers = 1, .chunks = std::vector{2L}});
  const ReferenceInput<float> input = make_input<float>(graph, 7);
  const ExecutedRun whole = execute(graph, plan, input, sgd, steps);
  plan.backward = Backward::split;
  const TaskList list = lower(make_blueprint(graph, plan, {}, true), ListKind::train);
  std::vector<std::uint32_t> before, weights, after;
  for (std::uint32_t t = 0; t < list.tasks.size(); ++t) {
    const Phase phase = list.tasks[t].actions.front().phase;
    const bool settles = phase == Phase::reduce || phase == Phase::update || phase == Phase::pack;
    (only_weight_gradients(list.tasks[t]) ? weights : settles ? after : before).push_back(t);
  }
  ASSERT_GT(weights.size(), 30u);
  // Chunks of a lane stay in their order, parts do not.
  std::ranges::stable_sort(weights, std::greater{},
                           [&](std::uint32_t t) { return list.tasks[t].actions.front().part; });
  plan.order = {before};
  plan.order.front().insert(plan.order.front().end(), weights.begin(), weights.end());
  plan.order.front().insert(plan.order.front().end(), after.begin(), after.end());
  plan.placement = Placement::fixed;
  const ExecutedRun late = execute(graph, plan, input, sgd, steps);
  EXPECT_TRUE(late.losses == whole.losses);
  EXPECT_TRUE(late.parameters == whole.parameters);
}

TEST(SplitBackward, IsAsNearToFloat64AsPyTorchsFloat32) {
  expect_parity("resnet18", {.workers = 2,
                             .chunks = std::vector<std::int64_t>{3, 1, 4},
                             .segments = "block",
                             .backward = Backward::split});
}

}  // namespace
}  // namespace regatta
