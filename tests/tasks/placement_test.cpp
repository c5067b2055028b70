#include "tasks/placement.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "models/models.h"
#include "support/error_text.h"
#include "support/executor_run.h"

namespace regatta {
namespace {

Blueprint blueprint_for(const std::function<void(Plan&)>& change) {
  const Graph graph = fuse(build_model("lenet5"));
  Plan plan = plan_for(
      graph, 12,
      {.workers = 2, .chunks = std::vector<std::int64_t>{4}, .segments = std::string("block")});
  if (change) change(plan);
  return make_blueprint(graph, plan, {}, true);
}

struct Lowered {
  explicit Lowered(const std::function<void(Plan&)>& change = {})
      : blueprint(blueprint_for(change)), list(lower(blueprint, ListKind::train)) {}
  // In the list's own order, dealt out between the workers in turn.
  std::vector<std::vector<std::uint32_t>> dealt() const {
    std::vector<RanAt> tasks;
    for (std::size_t t = 0; t < list.tasks.size(); ++t)
      tasks.push_back({static_cast<int>(t % 2), static_cast<double>(t)});
    return order_of(tasks, 2);
  }
  void fix(std::vector<std::vector<std::uint32_t>> order) {
    blueprint.plan.placement = Placement::fixed;
    blueprint.plan.order = std::move(order);
  }
  Blueprint blueprint;
  TaskList list;
};

bool loads(const Task& task) { return task.actions.front().phase == Phase::load; }

TEST(Placement, ADynamicPlanFixesNothing) {
  const Lowered made;
  for (const FixedPlace& place : fixed_places(made.blueprint, made.list))
    EXPECT_EQ(place.worker, -1);
}

TEST(Placement, AHybridPlanGivesEveryChunkOneWorker) {
  const Lowered made([](Plan& plan) { plan.placement = Placement::hybrid; });
  const std::vector<FixedPlace> places = fixed_places(made.blueprint, made.list);
  std::size_t bound = 0;
  for (std::size_t t = 0; t < places.size(); ++t) {
    const Action& first = made.list.tasks[t].actions.front();
    const bool computes = first.phase == Phase::forward || first.phase == Phase::backward;
    EXPECT_EQ(places[t].worker >= 0, computes) << t;
    if (!computes) continue;
    EXPECT_EQ(places[t].worker, static_cast<int>(first.chunk.value % 2));
    EXPECT_EQ(places[t].turn, 0);
    ++bound;
  }
  EXPECT_GT(bound, 8u);
}

TEST(Placement, AnOrderThatFollowsTheListIsSound) {
  Lowered made;
  made.fix(made.dealt());
  EXPECT_EQ(order_faults(made.blueprint, made.list), std::vector<std::string>{});
  // Turns count from 1 on each worker; loads have none.
  std::vector<std::int64_t> next{1, 1};
  const std::vector<FixedPlace> places = fixed_places(made.blueprint, made.list);
  for (std::size_t w = 0; w < 2; ++w)
    for (const std::uint32_t t : made.blueprint.plan.order[w]) {
      EXPECT_EQ(places[t].worker, static_cast<int>(w));
      EXPECT_EQ(places[t].turn, loads(made.list.tasks[t]) ? 0 : next[w]++);
    }
}

TEST(Placement, AnOrderThatWaitsForItselfIsRefusedWithTheTasks) {
  Lowered made;
  std::vector<std::vector<std::uint32_t>> order = made.dealt();
  for (std::vector<std::uint32_t>& mine : order) std::ranges::reverse(mine);
  made.fix(order);
  const std::vector<std::string> found = order_faults(made.blueprint, made.list);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].find("can never be followed"), std::string::npos);
  EXPECT_NE(found[0].find("waits for task"), std::string::npos);
}

TEST(Placement, EveryTaskIsRunOnceBySomeoneWhoMay) {
  Lowered made;
  std::vector<std::vector<std::uint32_t>> order = made.dealt();
  order[0].push_back(order[1].back());
  order[1].front() = 9999;
  made.fix(order);
  const std::vector<std::string> found = order_faults(made.blueprint, made.list);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_NE(found[0].find("task 9999"), std::string::npos);
  EXPECT_NE(found[1].find("nobody"), std::string::npos);
  EXPECT_NE(found[2].find("several"), std::string::npos);
  EXPECT_NE(
      error_text([&] { require_order(made.blueprint, made.list); }).find("make the plan anew"),
      std::string::npos);
}

TEST(Placement, AWorkerTakesOnlyWhatIsItsTurnAndLoadsInTheGaps) {
  // Worker 0: task 0, then task 1; worker 1: task 2. Task 3 loads, for worker 0.
  const StepPlaces places({{0, 1}, {0, 2}, {1, 1}, {0, 0}}, 2);
  Turns turns(2);
  const auto ready = [&](std::initializer_list<std::int64_t> tasks, std::int64_t step = 0) {
    std::vector<ReadyTask> made;
    for (const std::int64_t task : tasks) {
      made.emplace_back();
      made.back().list = step;
      made.back().order = task;
      made.back().fixed = places.at(static_cast<std::size_t>(task), step);
    }
    return made;
  };
  EXPECT_EQ(turns.pick(ready({1, 2}), 0, 0), -1);
  EXPECT_EQ(turns.pick(ready({1, 2}), 1, 0), 1);
  EXPECT_EQ(turns.pick(ready({3, 1}), 0, 0), 0);
  EXPECT_EQ(turns.pick(ready({3, 1, 0}), 0, 0), 2);
  turns.taken(ready({0}).front(), 0);
  EXPECT_EQ(turns.pick(ready({1}), 0, 0), 0);
  turns.taken(ready({1}).front(), 0);
  // The next step begins from the front.
  EXPECT_EQ(turns.pick(ready({1}, 1), 0, 0), -1);
  EXPECT_EQ(turns.pick(ready({0}, 1), 0, 0), 0);
}

// Worker 0 needs more joules than worker 1, and both are as fast; tasks of a second each.
class PacedTurns : public testing::Test {
 protected:
  void SetUp() override {
    Plan plan = plan_for(fuse(build_model("lenet5")), 12, {.workers = 2});
    plan.nodes[0].groups[0].powers = {{.slow = 1, .watts = 9}, {.slow = 1, .watts = 2}};
    plan.pace_s = 4;
    places = StepPlaces(std::vector<FixedPlace>(3), 2, pace_of(plan, {1, 1, 1}, {1, 1, 1}));
  }
  std::vector<ReadyTask> ready(std::int64_t step, std::initializer_list<std::int64_t> tasks) const {
    std::vector<ReadyTask> made;
    for (const std::int64_t task : tasks)
      made.push_back(
          {.list = step, .order = task, .fixed = places.at(static_cast<std::size_t>(task), step)});
    return made;
  }
  StepPlaces places;
  Turns turns{2};
};

TEST_F(PacedTurns, CountsWhatIsLeftOfAStepAndOfItsTime) {
  const auto all = ready(0, {0, 1, 2});
  EXPECT_EQ(turns.pick(all, 0, 10), Turns::rest) << "3 s of work, due at 14";
  EXPECT_EQ(turns.pick(all, 1, 10), 0);
  turns.taken(all[0], 1);
  EXPECT_EQ(turns.pick(ready(0, {1, 2}), 0, 11.5), 0) << "by now 2.5 s are left: two tasks";
  EXPECT_EQ(turns.pick(ready(0, {1, 2}), 1, 11.5), 0);
  EXPECT_EQ(turns.pick(ready(0, {1, 2}), 0, 11.5), Turns::rest) << "worker 1 has ended its first";
  EXPECT_EQ(turns.pick(ready(0, {1, 2}), 0, 12.5), 0);
}

TEST_F(PacedTurns, TheNextStepIsDueAPaceLaterHoweverEarlyItBegins) {
  const auto all = ready(0, {0, 1, 2});
  for (int task = 0; task < 3; ++task) {
    EXPECT_EQ(turns.pick(all, 1, 10 + task), 0);
    turns.taken(all[static_cast<std::size_t>(task)], 1);
  }
  EXPECT_EQ(turns.pick({}, 1, 13), Turns::none);
  EXPECT_EQ(turns.pick(ready(1, {0, 1, 2}), 0, 13), Turns::rest) << "due at 18";
  EXPECT_EQ(turns.pick(ready(1, {0, 1, 2}), 0, 14.9), Turns::rest);
  EXPECT_EQ(turns.pick(ready(1, {0, 1, 2}), 0, 15.1), 0);
}

TEST_F(PacedTurns, ALateStepDelaysTheOnesThatFollow) {
  EXPECT_EQ(turns.pick(ready(0, {0}), 1, 10), 0);
  EXPECT_EQ(turns.pick(ready(1, {0, 1, 2}), 0, 30), 0) << "3 s of either step, and 4 s for them";
}

TEST(Placement, APlanWithoutAPaceLeavesNothingToOthers) {
  Plan plan = plan_for(fuse(build_model("lenet5")), 12, {.workers = 2});
  plan.nodes[0].groups[0].powers = {{.slow = 1, .watts = 9}, {.slow = 1, .watts = 2}};
  EXPECT_EQ(pace_of(plan, {1}, {1}), nullptr);
}

ReadyTask with_turn(int worker, std::int64_t turn) {
  ReadyTask made;
  made.fixed = {worker, turn};
  return made;
}

TEST(Placement, ASkippedTurnHoldsUpNoLaterOne) {
  Turns turns(2);
  const std::vector<ReadyTask> fourth{with_turn(0, 4)};
  turns.skip({0, 3});  // worker 0's third turn, before it came
  turns.skip({1, 0});  // a task without a turn
  turns.taken(with_turn(0, 1), 0);
  EXPECT_EQ(turns.pick(fourth, 0, 0), -1) << "the second is still to come";
  turns.skip({0, 2});
  EXPECT_EQ(turns.pick(fourth, 0, 0), 0);
  EXPECT_EQ(turns.pick(std::vector{with_turn(1, 1)}, 1, 0), 0)
      << "another worker has turns of its own";
}

}  // namespace
}  // namespace regatta
