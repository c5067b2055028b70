// Cases whose time can be reckoned by hand.
#include "tasks/play.h"

#include <gtest/gtest.h>

#include "models/models.h"
#include "support/executor_run.h"

namespace regatta {
namespace {

RuntimeCosts free_runtime() { return {0, 0, 0, 0, 0, 0, 0, 0}; }

// Seconds as the task's flops say.
class MadeUpCosts final : public TaskCosts {
 public:
  explicit MadeUpCosts(RuntimeCosts runtime = free_runtime(), double crowding = 0)
      : runtime_(runtime), crowding_(crowding) {}
  Estimate of(const Task& task, int busy) const override {
    const double seconds = task.flops * (1 + crowding_ * (busy - 1));
    return {seconds, seconds, seconds};
  }
  RuntimeCosts runtime() const override { return runtime_; }

 private:
  RuntimeCosts runtime_;
  double crowding_;
};

Blueprint workers(int count, int in_flight = 2) {
  const Graph graph = fuse(build_model("tiny"));
  Plan plan = plan_for(graph, 8, {.workers = 8, .chunks = std::vector<std::int64_t>{8}});
  plan.nodes.front().groups.front().workers = count;
  plan.steps_in_flight = in_flight;
  return make_blueprint(graph, plan, {}, true);
}

struct Made {
  double seconds;
  std::vector<Access> accesses;
};

// Each a reduction of a bucket of its own, so that no two are taken for the same.
TaskList list_of(const std::vector<Made>& tasks, std::size_t buffers) {
  TaskList list;
  for (std::uint32_t b = 0; b < buffers; ++b)
    list.buffers.push_back({BufferKind::border, b, 0, 4, 1});
  for (const Made& each : tasks) {
    Task task;
    task.actions.push_back({.phase = Phase::reduce,
                            .bucket = BucketId{static_cast<std::uint32_t>(list.tasks.size())}});
    task.accesses = each.accesses;
    task.flops = each.seconds;
    list.tasks.push_back(task);
  }
  return list;
}

TEST(Play, AChainTakesTheSumOfItsTasksHoweverManyWorkersThereAre) {
  const TaskList chain = list_of(
      {{1, {{0, Mode::read_write}}}, {2, {{0, Mode::read_write}}}, {3, {{0, Mode::read_write}}}},
      1);
  for (const int count : {1, 2, 4})
    EXPECT_NEAR(play(workers(count), chain, MadeUpCosts{}).step_seconds, 6, 1e-9);
  const Played two = play(workers(2), chain, MadeUpCosts{});
  EXPECT_NEAR(two.total.busy, 0.5, 1e-9);
  EXPECT_NEAR(two.total.idle, 0.5, 1e-9);
}

// 0 forks into 1, 2 and 3, which join in 4.
TaskList fork_join() {
  return list_of({{1, {{0, Mode::read_write}}},
                  {3, {{0, Mode::read}, {1, Mode::write}}},
                  {2, {{0, Mode::read}, {2, Mode::write}}},
                  {1, {{0, Mode::read}, {3, Mode::write}}},
                  {1, {{0, Mode::read_write}, {1, Mode::read}, {2, Mode::read}, {3, Mode::read}}}},
                 4);
}

TEST(Play, AForkEndsWithItsLongestBranchIfThereAreWorkersForAll) {
  EXPECT_NEAR(play(workers(3), fork_join(), MadeUpCosts{}).step_seconds, 1 + 3 + 1, 1e-9);
}

TEST(Play, TwoWorkersShareAForkTheLongestFirst) {
  // One takes 3, the other 2 and then 1.
  const Played played = play(workers(2), fork_join(), MadeUpCosts{});
  EXPECT_NEAR(played.step_seconds, 1 + 3 + 1, 1e-9);
  EXPECT_NE(played.tasks[1].worker, played.tasks[2].worker);
  EXPECT_EQ(played.tasks[2].worker, played.tasks[3].worker);
  EXPECT_NEAR(played.tasks[3].start, played.tasks[2].end, 1e-9);
}

TEST(Play, OneWorkerDoesAllAndIsNeverIdle) {
  const Played played = play(workers(1), fork_join(), MadeUpCosts{});
  EXPECT_NEAR(played.step_seconds, 8, 1e-9);
  EXPECT_NEAR(played.total.busy, 1, 1e-9);
}

TEST(Play, BusyNeighboursSlowATaskForAsLongAsTheyAreBusy) {
  // Alone a second each; two at a time they take twice as long.
  const TaskList pair = list_of({{1, {{0, Mode::read_write}}}, {1, {{1, Mode::read_write}}}}, 2);
  EXPECT_NEAR(play(workers(2, 1), pair, MadeUpCosts(free_runtime(), 1.0)).step_seconds, 2, 1e-9);
  // Both tasks share memory for 2 s, in which each does 1 s of work; then the longer one is alone.
  const TaskList unequal = list_of({{3, {{0, Mode::read_write}}}, {1, {{1, Mode::read_write}}}}, 2);
  EXPECT_NEAR(play(workers(2, 1), unequal, MadeUpCosts(free_runtime(), 1.0)).step_seconds, 2 + 2,
              1e-9);
}

TEST(Play, TheRuntimesPriceIsPaidForEveryTaskAndCountedAsOverhead) {
  const TaskList chain = list_of({{1, {{0, Mode::read_write}}}, {1, {{0, Mode::read_write}}}}, 1);
  RuntimeCosts runtime = free_runtime();
  runtime.task = 0.25;
  const Played played = play(workers(1), chain, MadeUpCosts(runtime));
  EXPECT_NEAR(played.step_seconds, 2.5, 1e-9);
  EXPECT_NEAR(played.total.overhead, 0.2, 1e-9);
  EXPECT_NEAR(played.total.idle, 0, 1e-9);
}

TEST(Play, BuffersCostTimeAndTasksThatBecomeReadyTogetherAreReleasedOneByOne) {
  RuntimeCosts runtime = free_runtime();
  runtime.access = 0.1;
  // One buffer, two in the branches, four in the end.
  EXPECT_NEAR(play(workers(3), fork_join(), MadeUpCosts(runtime)).step_seconds,
              1 + 3 + 1 + 0.1 * (1 + 2 + 4), 1e-9);
  runtime.access = 0;
  runtime.release = 0.25;
  // The second branch is ready half a second after the first, the third half a second later; the
  // worker that releases them has the first for itself, but only then.
  const Played played = play(workers(3), fork_join(), MadeUpCosts(runtime));
  std::vector<double> starts;
  for (const std::size_t t : {1, 2, 3})
    starts.push_back(played.tasks[t].start - played.tasks[0].end);
  EXPECT_NEAR(starts[0], 1, 1e-9);
  EXPECT_NEAR(starts[1], 0.5, 1e-9);
  EXPECT_NEAR(starts[2], 1, 1e-9);
  EXPECT_NEAR(played.step_seconds, 1 + 1 + 3 + 1, 1e-9);
}

TEST(Play, ASlowSubmitterHoldsUpTheWorkers) {
  const TaskList pair = list_of({{1, {{0, Mode::read_write}}}, {1, {{0, Mode::read_write}}}}, 1);
  RuntimeCosts runtime = free_runtime();
  runtime.submission = 3;
  EXPECT_NEAR(play(workers(1), pair, MadeUpCosts(runtime)).step_seconds, 6, 1e-9);
}

TEST(Play, ASlowWorkerTakesSoManyTimesAsLong) {
  Blueprint pair = workers(2);
  pair.plan.nodes.front().groups.front().slow = {1, 3};
  // Two branches of a fork: the slow worker's one takes thrice as long.
  const TaskList fork = list_of(
      {{1, {{0, Mode::write}}}, {1, {{1, Mode::write}}}, {1, {{0, Mode::read}, {1, Mode::read}}}},
      2);
  pair.plan.steps_in_flight = 1;
  EXPECT_NEAR(play(pair, fork, MadeUpCosts{}).step_seconds, 4, 1e-9);
}

TEST(Play, NothingBeatsTheSumOfWorkOverTheWorkers) {
  const Blueprint two = workers(2);
  EXPECT_NEAR(least_seconds(two, fork_join(), MadeUpCosts{}), 4, 1e-9);
  EXPECT_GE(play(two, fork_join(), MadeUpCosts{}).step_seconds, 4);
}

TEST(Play, ARealListIsPlayedToItsEndAndTwiceAlike) {
  const Graph graph = fuse(build_model("resnet18", {.input = Shape{3, 32, 32}, .classes = 10}));
  const Plan plan = plan_for(graph, 16, {.workers = 4, .chunks = std::vector<std::int64_t>{8}});
  const Blueprint blueprint = make_blueprint(graph, plan, {}, true);
  const TaskList list = lower(blueprint, ListKind::train);
  const MadeUpCosts costs({}, 0.1);
  const Played first = play(blueprint, list, costs), second = play(blueprint, list, costs);
  EXPECT_EQ(first.step_seconds, second.step_seconds);
  EXPECT_GE(first.step_seconds, least_seconds(blueprint, list, costs));
  for (std::size_t t = 0; t < list.tasks.size(); ++t) {
    EXPECT_EQ(first.tasks[t].worker, second.tasks[t].worker);
    EXPECT_GE(first.tasks[t].worker, 0);
  }
}

}  // namespace
}  // namespace regatta
