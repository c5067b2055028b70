// Segments whose forward runs again before their backward, carried out by StarPU: the same bits as
// where all values are kept, in less memory.
#include <gtest/gtest.h>

#include "models/models.h"
#include "parity/formula.h"
#include "plan/segments.h"
#include "support/executor_run.h"
#include "support/grouped.h"
#include "support/small_networks.h"
#include "tasks/footprint.h"

namespace regatta {
namespace {

const ReferenceSgd sgd{.learning_rate = 0.02, .momentum = 0.9, .weight_decay = 1e-4};

std::size_t bytes_of(const Graph& graph, const Plan& plan) {
  const Blueprint blueprint = make_blueprint(graph, plan, {}, true);
  const TaskList list = lower(blueprint, ListKind::train);
  EXPECT_EQ(faults(list), std::vector<std::string>{});
  return peak_bytes(blueprint, footprints(blueprint, {&list}), GroupId{0});
}

// Compares with computing all segments but the last again, and the first one alone.
void expect_same_bits(const Graph& graph, std::int64_t batch, Plan plan) {
  const ReferenceInput<float> input = make_input<float>(graph, batch);
  const ExecutedRun kept = execute(graph, plan, input, sgd, /*steps=*/3);
  for (const char* choice : {"all", "0"}) {
    Plan again = plan;
    mark_recomputed(again.segments, choice);
    SCOPED_TRACE(to_json(again, graph).dump());
    require_valid(again, graph, batch);
    EXPECT_LE(bytes_of(graph, again), bytes_of(graph, plan));
    const ExecutedRun run = execute(graph, again, input, sgd, /*steps=*/3);
    EXPECT_TRUE(run.losses == kept.losses);
    EXPECT_TRUE(run.gradients == kept.gradients);
    EXPECT_TRUE(run.states == kept.states);
    EXPECT_TRUE(run.parameters == kept.parameters);
  }
}

class RecomputedNetwork : public testing::TestWithParam<SmallNetwork> {};

TEST_P(RecomputedNetwork, LeavesTheBitsOfEveryOperatorAsTheyAre) {
  const Graph graph = build(GetParam());
  for (const std::vector<std::int64_t>& chunks : {std::vector{1L}, std::vector{4L, 1L, 2L}})
    expect_same_bits(
        graph, 7,
        plan_for(graph, 7,
                 {.workers = 2, .chunks = chunks, .segments = "3", .deterministic = true}));
}

INSTANTIATE_TEST_SUITE_P(Small, RecomputedNetwork, testing::ValuesIn(small_networks()),
                         [](const auto& each) { return std::string(each.param.name); });
INSTANTIATE_TEST_SUITE_P(More, RecomputedNetwork, testing::ValuesIn(more_small_networks()),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(Recompute, LeavesTheBitsOfResidualNetworksAsTheyAre) {
  const Graph graph = fuse(build_model("resnet20", {.input = Shape{3, 16, 16}, .classes = 10}));
  for (const char* segments : {"block", "op"})
    for (const std::vector<std::int64_t>& chunks :
         {std::vector{1L}, std::vector{2L}, std::vector{4L, 1L, 2L}})
      expect_same_bits(
          graph, 7,
          plan_for(graph, 7,
                   {.workers = 2, .chunks = chunks, .segments = segments, .deterministic = true}));
}

TEST(Recompute, LeavesTheBitsOfGroupedStatisticsAsTheyAre) {
  const Graph graph =
      grouped(fuse(build_model("resnet20", {.input = Shape{3, 16, 16}, .classes = 10})), 2);
  for (const std::int64_t chunks : {1, 2}) {
    const Plan plan = plan_for(
        graph, 8,
        {.workers = 2, .chunks = std::vector{chunks}, .segments = "block", .deterministic = true});
    expect_same_bits(graph, 8, plan);
  }
}

TEST(Recompute, KeepsBordersAndOneArenaForAllSegmentsOfAChunk) {
  const Graph graph = fuse(build_model("resnet18", {.input = Shape{3, 64, 64}}));
  Plan plan = plan_for(graph, 16, {.workers = 1, .segments = "block"});
  const auto arenas = [&] {
    const Blueprint blueprint = make_blueprint(graph, plan, {}, true);
    const TaskList list = lower(blueprint, ListKind::train);
    std::size_t count = 0, bytes = 0;
    for (const Buffer& buffer : list.buffers)
      if (buffer.kind == BufferKind::arena) {
        ++count;
        bytes += buffer.bytes;
      }
    return std::pair(count, bytes);
  };
  const auto [count, bytes] = arenas();
  EXPECT_GT(count, 5u);
  mark_recomputed(plan.segments, "all");
  const auto [count_again, bytes_again] = arenas();
  EXPECT_EQ(count_again, 2u) << "the last segment has its own";
  EXPECT_LT(bytes_again, bytes / 2);
}

TEST(Recompute, RunsForwardOnceMoreAndNothingElse) {
  const Graph graph = fuse(build_model("resnet20", {.input = Shape{3, 16, 16}, .classes = 10}));
  Plan plan = plan_for(graph, 8, {.workers = 2, .chunks = std::vector{2L}, .segments = "3"});
  const auto flops = [&] {
    double sum = 0;
    for (const Task& task : lower(make_blueprint(graph, plan, {}, true), ListKind::train).tasks)
      sum += task.flops;
    return sum;
  };
  const auto tasks = [&] {
    return lower(make_blueprint(graph, plan, {}, true), ListKind::train).tasks.size();
  };
  const double before = flops();
  const std::size_t tasks_before = tasks();
  mark_recomputed(plan.segments, "all");
  EXPECT_EQ(tasks(), tasks_before);
  // A forward takes about a third of a step; the last segment's and what backward does not read
  // is not computed again.
  EXPECT_GT(flops(), 1.1 * before);
  EXPECT_LT(flops(), 1.34 * before);
}

}  // namespace
}  // namespace regatta
