// Task lists of one rank among several: what travels, and what waits for it.
#include <gtest/gtest.h>

#include <algorithm>

#include "graph/op.h"
#include "models/models.h"
#include "plan/rank_plan.h"
#include "tasks/task_list.h"

namespace regatta {
namespace {

Blueprint rank_of(const Graph& graph, int rank, bool deterministic, NodeUpdate update) {
  Recipe recipe;
  recipe.model = graph.name();
  recipe.batch = 16;
  PlanOptions options;
  options.deterministic = deterministic;
  if (deterministic) options.chunks = {{4}};
  const Plan whole =
      plan_over_ranks(graph, recipe, options, {{"a", 1, {}}, {"b", 2, {}}}, {12, 4}, update);
  return make_blueprint(graph, plan_of_node(whole, static_cast<std::size_t>(rank)), {}, true,
                        rank_place(whole, static_cast<std::size_t>(rank)));
}

std::ptrdiff_t tasks_with(const TaskList& list, Phase phase) {
  return std::ranges::count_if(list.tasks, [&](const Task& task) {
    return std::ranges::any_of(task.actions,
                               [&](const Action& action) { return action.phase == phase; });
  });
}

TEST(RankLists, EveryBucketTravelsBetweenItsGradientAndItsStep) {
  const Blueprint blueprint = rank_of(fuse(build_model("lenet5")), 0, false, NodeUpdate::ring);
  const TaskList list = lower(blueprint, ListKind::train);
  EXPECT_EQ(faults(list), std::vector<std::string>{});
  EXPECT_EQ(tasks_with(list, Phase::exchange), std::ssize(blueprint.buckets));
  EXPECT_EQ(tasks_with(list, Phase::running_sum), 0);
  EXPECT_EQ(tasks_with(list, Phase::exchange_results), 1);
  for (const Task& task : list.tasks) {
    if (travels(task))
      EXPECT_EQ(task.actions.size(), 1u);
    else
      for (const Action& action : task.actions) EXPECT_FALSE(travels(action.phase));
  }
}

TEST(RankLists, ARunningSumComesInOnAllRanksButTheFirst) {
  const Graph graph = fuse(build_model("lenet5"));
  const Blueprint first = rank_of(graph, 0, true, NodeUpdate::chain),
                  second = rank_of(graph, 1, true, NodeUpdate::chain);
  EXPECT_EQ(tasks_with(lower(first, ListKind::train), Phase::running_sum), 0);
  const TaskList list = lower(second, ListKind::train);
  EXPECT_EQ(tasks_with(list, Phase::running_sum), std::ssize(second.buckets));
  // It has one chunk, and still a sum to make.
  EXPECT_EQ(second.chunks.size(), 1u);
  EXPECT_EQ(tasks_with(list, Phase::reduce), std::ssize(second.buckets));
}

TEST(RankLists, ChunksOfAllRanksMeetAtEveryBatchNormBothWays) {
  const Graph graph = fuse(build_model("resnet20"));
  const Blueprint blueprint = rank_of(graph, 1, false, NodeUpdate::ring);
  const TaskList list = lower(blueprint, ListKind::train);
  EXPECT_EQ(faults(list), std::vector<std::string>{});
  const auto meetings =
      std::ranges::count_if(graph.nodes(), [](const Node& node) { return node.op->meets; });
  ASSERT_GT(meetings, 0);
  EXPECT_EQ(tasks_with(list, Phase::combine), meetings);
  EXPECT_EQ(tasks_with(list, Phase::exchange_sums), meetings);
  EXPECT_EQ(tasks_with(list, Phase::exchange_gradient_sums), meetings);
  // Evaluation never meets.
  EXPECT_EQ(tasks_with(lower(blueprint, ListKind::evaluate), Phase::exchange_sums), 0);
}

TEST(RankLists, AloneNothingTravels) {
  Recipe recipe;
  recipe.model = "lenet5";
  recipe.batch = 16;
  const Graph graph = fuse(build_model("lenet5"));
  const Blueprint blueprint = make_blueprint(graph, make_plan(graph, recipe, {}), {}, true);
  for (const ListKind job : {ListKind::train, ListKind::evaluate, ListKind::prepare})
    for (const Task& task : lower(blueprint, job).tasks) EXPECT_FALSE(travels(task));
}

}  // namespace
}  // namespace regatta
