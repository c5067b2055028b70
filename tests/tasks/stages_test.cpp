#include "tasks/stages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "models/models.h"
#include "plan/make_plan.h"
#include "plan/segments.h"

namespace regatta {
namespace {

using ::testing::IsEmpty;

// Two nodes' cores, with the first so many segments on the first one.
Plan two_stages(const Graph& graph, std::uint32_t first, int chunks) {
  Plan plan;
  plan.segments = segments_named(graph, "block");
  DeviceGroup group;
  group.chunks = equal_chunks(8, chunks);
  plan.nodes = {{"a", {group}}, {"b", {group}}};
  const auto last = static_cast<std::uint32_t>(plan.segments.size()) - 1;
  plan.stages = {{"a", "cpu", 0, first - 1}, {"b", "cpu", first, last}};
  return plan;
}

struct Staged {
  Staged(const Graph& graph, const Plan& staged_plan, const Numbers& numbers = {})
      : plan(staged_plan),
        parts(stage_blueprints(graph, plan, numbers)),
        list(lower_stages(plan, parts)) {}
  Plan plan;
  std::vector<Blueprint> parts;
  TaskList list;
};

using Done = std::multiset<std::tuple<Phase, std::uint32_t, std::uint32_t, std::uint32_t>>;
Done done_by(const TaskList& list) {
  Done done;
  for (const Task& task : list.tasks)
    for (const Action& action : task.actions)
      if (action.phase != Phase::pack)
        done.emplace(action.phase, action.segment.value, action.part,
                     action.chunk.value + (action.bucket.value << 16));
  return done;
}

std::set<BufferKind> shared_kinds(const TaskList& list) {
  std::vector<std::set<std::uint32_t>> users(list.buffers.size());
  for (const Task& task : list.tasks)
    for (const Access& access : task.accesses) users[access.buffer].insert(task.group.value);
  std::set<BufferKind> kinds;
  for (std::size_t b = 0; b < users.size(); ++b)
    if (users[b].size() > 1) kinds.insert(list.buffers[b].kind);
  return kinds;
}

TEST(Stages, DoTogetherWhatOneGroupWouldDoAlone) {
  // With batch norms: chunks meet inside their stage.
  for (const char* model : {"lenet5", "resnet18"}) {
    const Graph graph = fuse(build_model(model));
    const Staged staged(graph, two_stages(graph, 2, 4));
    EXPECT_THAT(faults(staged.list), IsEmpty()) << model;
    EXPECT_EQ(done_by(staged.list), done_by(lower(staged.parts[0], ListKind::train))) << model;
    for (const Task& task : staged.list.tasks)
      for (const Action& action : task.actions)
        if (action.phase == Phase::forward || action.phase == Phase::backward ||
            action.phase == Phase::update) {
          EXPECT_EQ(task.group.value, action.segment.value < 2 ? 0u : 1u);
        }
  }
}

TEST(Stages, ShareNothingButValuesAndGradientsAtTheirBorder) {
  const Graph graph = fuse(build_model("resnet18"));
  const Staged staged(graph, two_stages(graph, 3, 2));
  EXPECT_EQ(shared_kinds(staged.list), (std::set{BufferKind::border, BufferKind::border_gradient}));
}

TEST(Stages, ClippingBringsTheSquaresOfAllTogether) {
  const Graph graph = fuse(build_model("lenet5"));
  Numbers numbers;
  numbers.optimizer.clip_norm = 1;
  const Staged staged(graph, two_stages(graph, 2, 2), numbers);
  EXPECT_THAT(faults(staged.list), IsEmpty());
  EXPECT_EQ(done_by(staged.list), done_by(lower(staged.parts[0], ListKind::train)));
  const std::set<BufferKind> shared = shared_kinds(staged.list);
  EXPECT_TRUE(shared.contains(BufferKind::squares));
  EXPECT_TRUE(shared.contains(BufferKind::clip));
}

TEST(Stages, KeepTheirOwnParametersAndAllChunksOfAStep) {
  const Graph graph = fuse(build_model("lenet5"));
  const Staged staged(graph, two_stages(graph, 2, 4));
  const std::vector<Footprint> found = stage_footprints(staged.plan, staged.list);
  const auto bytes_of = [&](std::uint32_t group, BufferKind kind) {
    std::size_t bytes = 0;
    for (const Footprint& each : found)
      if (each.group == GroupId{group} && each.kind == kind) bytes += each.bytes;
    return bytes;
  };
  std::size_t parameters[2] = {0, 0};
  for (const Bucket& bucket : staged.parts[0].buckets)
    parameters[bucket.segment.value < 2 ? 0 : 1] += bucket.bytes;
  for (const std::uint32_t group : {0u, 1u}) {
    EXPECT_EQ(bytes_of(group, BufferKind::parameters), parameters[group]);
    std::size_t arenas = 0;
    for (std::uint32_t s = 0; s < staged.plan.segments.size(); ++s)
      if ((s < 2) == (group == 0))
        arenas += 4 * staged.parts[group].segments[s].train_arena[0].bytes;
    EXPECT_EQ(bytes_of(group, BufferKind::arena), arenas);
  }
  // What crosses is in the memory of both.
  EXPECT_GT(bytes_of(0, BufferKind::border), 0u);
  EXPECT_GT(bytes_of(1, BufferKind::border), 0u);
  EXPECT_EQ(bytes_of(1, BufferKind::samples), 0u);
}

TEST(Stages, FillBeforeTheyDrainAndTakeChunksInTurn) {
  const Graph graph = fuse(build_model("lenet5"));
  const Staged staged(graph, two_stages(graph, 2, 3));
  const std::vector<double> ranks = fill_drain_ranks(staged.list);
  const auto rank = [&](Phase phase, std::uint32_t segment, std::uint32_t chunk) {
    for (std::size_t t = 0; t < ranks.size(); ++t) {
      const Action& action = staged.list.tasks[t].actions.front();
      if (action.phase == phase && action.segment.value == segment && action.chunk.value == chunk)
        return ranks[t];
    }
    return 1.0;
  };
  EXPECT_GT(rank(Phase::forward, 1, 0), rank(Phase::forward, 0, 1));
  EXPECT_GT(rank(Phase::forward, 0, 2), rank(Phase::backward, 1, 0));
  EXPECT_GT(rank(Phase::backward, 0, 0), rank(Phase::backward, 1, 1));
  EXPECT_GT(rank(Phase::backward, 0, 2), rank(Phase::update, 1, 0));
  for (const double each : ranks) EXPECT_LT(each, 0);
}

// A group's costs: every task takes as long, and of that time so much was measured.
class EvenCosts : public TaskCosts {
 public:
  EvenCosts(double seconds, MeasuredShares measured) : seconds_(seconds), measured_(measured) {}
  Estimate of(const Task& task, int) const override {
    EXPECT_EQ(task.group, GroupId{}) << "costs know their own group as the first";
    return {seconds_, seconds_, seconds_};
  }
  RuntimeCosts runtime() const override { return {}; }
  MeasuredShares measured_shares(const TaskList& list, int) const override {
    EXPECT_FALSE(list.tasks.empty());
    for (const Task& task : list.tasks) EXPECT_EQ(task.group, GroupId{});
    return measured_;
  }

 private:
  double seconds_;
  MeasuredShares measured_;
};

TEST(Stages, WhatWasMeasuredOfEachStageCountsByItsTime) {
  const Graph graph = fuse(build_model("lenet5"));
  const Staged staged(graph, two_stages(graph, 2, 4));
  double tasks[2] = {0, 0};
  for (const Task& task : staged.list.tasks) ++tasks[task.group.value];
  std::vector<std::unique_ptr<TaskCosts>> costs;
  costs.push_back(
      std::make_unique<EvenCosts>(3, MeasuredShares{.any_size = 0.5, .near_size = 0.25}));
  costs.push_back(std::make_unique<EvenCosts>(1, MeasuredShares{.any_size = 1, .near_size = 0}));
  const MeasuredShares measured = StageCosts(std::move(costs)).measured_shares(staged.list, 1);
  const double seconds = 3 * tasks[0] + tasks[1];
  EXPECT_DOUBLE_EQ(measured.any_size, (3 * tasks[0] * 0.5 + tasks[1]) / seconds);
  EXPECT_DOUBLE_EQ(measured.near_size, 3 * tasks[0] * 0.25 / seconds);
}

TEST(Stages, OfStagesThatTakeNoTimeNothingWasMeasured) {
  const Graph graph = fuse(build_model("lenet5"));
  const Staged staged(graph, two_stages(graph, 2, 4));
  std::vector<std::unique_ptr<TaskCosts>> costs;
  for (int group = 0; group < 2; ++group)
    costs.push_back(std::make_unique<EvenCosts>(0, MeasuredShares{.any_size = 1, .near_size = 1}));
  const MeasuredShares measured = StageCosts(std::move(costs)).measured_shares(staged.list, 1);
  EXPECT_EQ(measured.any_size, 0);
  EXPECT_EQ(measured.near_size, 0);
}

}  // namespace
}  // namespace regatta
