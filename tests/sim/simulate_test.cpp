// Task lists made by hand, played on platforms made by hand: times and joules are pinned.
#include "sim/simulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "models/models.h"
#include "plan/make_plan.h"
#include "tasks/play.h"
#include "tasks/split_updates.h"
#include "trace/analysis.h"
#include "trace/energy.h"

namespace regatta::sim {
namespace {

// A FLOP takes a second; each further busy worker makes it take `crowding` longer.
class HandCosts final : public TaskCosts {
 public:
  Estimate of(const Task& task, int busy) const override {
    const double seconds = task.flops * (1 + crowding * (busy - 1));
    return {seconds, seconds * 0.9, seconds * 1.1};
  }
  RuntimeCosts runtime() const override { return costs; }
  std::vector<double> spread(GroupId) const override { return levels; }

  std::vector<double> levels;
  double crowding = 0;
  RuntimeCosts costs{0, 0, 0, 0, 0, 0, 0, 0};
};

Platform machines(int nodes, int cores = 2) {
  Platform platform;
  platform.name = "hand-made";
  PlatformNode node;
  node.name = "n";
  node.count = nodes;
  node.groups = {
      {.name = "cpu", .count = cores, .memory = 1 << 30, .watts = {10, 30}, .costs = {.flops = 1}}};
  platform.nodes = {node};
  platform.network.link = {1e6, 0};
  return platform;
}

struct Hand {
  explicit Hand(int workers, int in_flight = 1) {
    const Graph graph = fuse(build_model("tiny"));
    Recipe recipe;
    recipe.batch = 8;
    Plan plan = make_plan(graph, recipe, {.workers = workers, .chunks = {{workers}}});
    plan.nodes[0].groups[0].workers = workers;
    plan.steps_in_flight = in_flight;
    blueprint = make_blueprint(graph, plan, {}, true);
  }

  std::uint32_t buffer(int copies = 1) {
    const auto number = static_cast<std::uint32_t>(list.buffers.size());
    list.buffers.push_back({BufferKind::samples, number, 0, 8, copies});
    return number;
  }
  void task(double seconds, std::vector<Access> accesses) {
    Task task;
    task.actions = {
        {.phase = Phase::combine, .part = static_cast<std::uint32_t>(list.tasks.size())}};
    task.accesses = std::move(accesses);
    task.flops = seconds;
    list.tasks.push_back(task);
  }
  Simulated play(std::int64_t steps = 1, SimulationOptions options = {}) {
    options.steps = steps;
    return simulate({machines(1), {{&blueprint, &list, &costs}}, {{0, 0, {{0, 0}}}}, {}}, options);
  }

  Blueprint blueprint = make_blueprint(
      fuse(build_model("tiny")), make_plan(fuse(build_model("tiny")), Recipe{}, {}), {}, true);
  TaskList list;
  HandCosts costs;
};

TEST(Simulate, AChainTakesTheSumOfItsTasks) {
  Hand hand(2);
  const std::uint32_t b = hand.buffer();
  for (const double seconds : {1.0, 2.0, 3.0}) hand.task(seconds, {{b, Mode::read_write}});
  const Simulated made = hand.play();
  EXPECT_NEAR(made.step_s[0], 6, 1e-6);
  // Two cores idle at 10 W, one works at 20 W more.
  EXPECT_NEAR(made.energy_j[0], 2 * 10 * 6 + 20 * 6, 1e-3);
  EXPECT_NEAR(made.groups[0].busy_s, 6, 1e-6);
  EXPECT_EQ(made.tasks, 3);
}

// The planner's clock and SimGrid's drive the same engine: on one node without a network they
// agree, task by task, with memory contention, the runtime's costs and several steps in flight.
TEST(Simulate, TheEventClockAndSimGridGiveTheSameTimes) {
  for (const int workers : {1, 2, 3}) {
    const Graph graph = fuse(build_model("resnet20", {Shape{3, 16, 16}, 10}));
    Recipe recipe;
    recipe.batch = 8;
    const Plan plan = make_plan(graph, recipe, {.workers = workers, .chunks = {{workers}}});
    const Blueprint blueprint = make_blueprint(graph, plan, {}, true);
    const TaskList list = lower(blueprint, ListKind::train);
    const ProfileCosts costs(blueprint, nullptr, "made up");
    constexpr int steps = 4;  // so many are played
    const Played played = play(blueprint, list, costs);
    const Simulated simulated =
        simulate({machines(1, workers), {{&blueprint, &list, &costs}}, {{0, 0, {{0, 0}}}}, {}},
                 {.steps = steps});
    const auto& tasks = simulated.record.tasks;
    ASSERT_EQ(tasks.size(), steps * list.tasks.size());
    for (std::size_t t = 0; t < list.tasks.size(); ++t) {
      const trace::Task& task = tasks[(steps - 1) * list.tasks.size() + t];
      EXPECT_EQ(task.worker, played.tasks[t].worker);
      EXPECT_NEAR(trace::seconds(task.start), played.tasks[t].start, 1e-6);
      EXPECT_NEAR(trace::seconds(task.end), played.tasks[t].end, 1e-6);
    }
  }
}

// Eight seconds of work for a core that draws 20 W beyond idle, and one that takes twice as long
// with 3 W.
Simulated with_pace(double pace_s, std::int64_t steps = 1) {
  Hand hand(2);
  DeviceGroup& group = hand.blueprint.plan.nodes[0].groups[0];
  group.powers = {{.slow = 1, .watts = 20}, {.slow = 2, .watts = 3}};
  hand.blueprint.plan.pace_s = pace_s;
  for (int i = 0; i < 8; ++i) hand.task(1, {{hand.buffer(), Mode::read_write}});
  return hand.play(steps);
}

TEST(Simulate, WithAPaceCoresThatNeedMoreJoulesRest) {
  // Two cores idle at 10 W.
  const Simulated fastest = with_pace(0);
  EXPECT_NEAR(fastest.step_s[0], 6, 1e-6) << "five and three, or six and two of the tasks";
  const Simulated leanest = with_pace(16);
  EXPECT_NEAR(leanest.step_s[0], 16, 1e-6) << "the slow core alone";
  EXPECT_NEAR(leanest.energy_j[0], 16 * 20 + 16 * 3, 1e-3);
  // In 11 s the slow core does five tasks; the fast one does tasks until those left fit into 11 s.
  const Simulated between = with_pace(11);
  EXPECT_LE(between.step_s[0], 11 + 1e-6);
  EXPECT_GT(between.step_s[0], 8);
  for (const Simulated* made : {&fastest, &leanest, &between}) {
    double tasks = 0;
    for (const GroupEnergy& row : made->energy) tasks += row.tasks_j;
    double by_hand = 0;
    for (const trace::Task& task : made->record.tasks)
      by_hand += trace::seconds(task.end - task.start) * (task.worker == 0 ? 20 : 3);
    EXPECT_NEAR(tasks, by_hand, 1e-3);
  }
}

TEST(Simulate, StepsKeepTheirPace) {
  EXPECT_NEAR(with_pace(16, 6).step_s[0], 16, 1e-6);
  EXPECT_NEAR(with_pace(0, 6).step_s[0], 6, 0.5);
}

// Without a pace, watts of workers do not change which tasks the policy picks.
TEST(Simulate, WithoutAPaceWattsChangeNoTime) {
  const auto tasks = [](bool powers) {
    const Graph graph = fuse(build_model("resnet20", {Shape{3, 16, 16}, 10}));
    Recipe recipe;
    recipe.batch = 8;
    Plan plan = make_plan(graph, recipe, {.workers = 3, .chunks = {{6}}});
    if (powers) plan.nodes[0].groups[0].powers = {{.watts = 9}, {.watts = 1}, {.watts = 20}};
    const Blueprint blueprint = make_blueprint(graph, plan, {}, true);
    const TaskList list = lower(blueprint, ListKind::train);
    const ProfileCosts costs(blueprint, nullptr, "made up");
    return play(blueprint, list, costs).tasks;
  };
  const auto with = tasks(true), without = tasks(false);
  ASSERT_EQ(with.size(), without.size());
  for (std::size_t t = 0; t < with.size(); ++t) {
    EXPECT_EQ(with[t].worker, without[t].worker);
    EXPECT_EQ(with[t].start, without[t].start);
    EXPECT_EQ(with[t].end, without[t].end);
  }
}

TEST(Simulate, AllCoresOfATeamDrawPower) {
  Hand hand(1);
  hand.blueprint.plan.nodes[0].groups[0].team = 2;
  hand.task(6, {{hand.buffer(), Mode::write}});
  const Simulated made = hand.play();
  EXPECT_NEAR(made.step_s[0], 6, 1e-6);
  EXPECT_NEAR(made.energy_j[0], 2 * 30 * 6, 1e-3);
}

TEST(Simulate, AForkJoinUsesAllWorkers) {
  Hand hand(2);
  const std::uint32_t begin = hand.buffer();
  hand.task(1, {{begin, Mode::write}});
  std::vector<Access> ends;
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t own = hand.buffer();
    hand.task(2, {{begin, Mode::read}, {own, Mode::write}});
    ends.push_back({own, Mode::read});
  }
  hand.task(1, ends);
  EXPECT_NEAR(hand.play().step_s[0], 1 + 2 * 2 + 1, 1e-6);
}

TEST(Simulate, BusyNeighboursSlowAWorkerDownAsLongAsTheyAreBusy) {
  Hand hand(2);
  hand.costs.crowding = 0.5;
  hand.task(2, {{hand.buffer(), Mode::write}});
  hand.task(1, {{hand.buffer(), Mode::write}});
  // The short one takes 1.5 s; by then half of the long one is done, and the rest takes 1 s alone.
  EXPECT_NEAR(hand.play().step_s[0], 2.5, 1e-6);
}

TEST(Simulate, ASlowWorkerTakesSoManyTimesAsLong) {
  Hand hand(2);
  hand.blueprint.plan.nodes[0].groups[0].slow = {1, 3};
  hand.task(1, {{hand.buffer(), Mode::write}});
  hand.task(1, {{hand.buffer(), Mode::write}});
  const Simulated made = hand.play();
  EXPECT_NEAR(made.step_s[0], 3, 1e-6);
  EXPECT_NEAR(made.groups[0].busy_s, 1 + 3, 1e-6);
}

TEST(Simulate, ASlowedWorkerIsInTheWayOfOthersOnlyWhileItComputes) {
  Hand hand(2);
  hand.costs.crowding = 0.5;
  hand.blueprint.plan.nodes[0].groups[0].slow = {1, 2};
  hand.blueprint.plan.placement = Placement::fixed;
  hand.blueprint.plan.order = {{0}, {1}};
  hand.task(1, {{hand.buffer(), Mode::write}});
  hand.task(1, {{hand.buffer(), Mode::write}});
  // The fast one takes 1.25 s. The slow one, by then 1.25 / 3 done, has twice the rest to go.
  EXPECT_NEAR(hand.play().step_s[0], 1.25 + 2 * (1 - 1.25 / 3), 1e-6);
}

// Two workers meet after each pair of tasks. Of two levels each pair draws both, or twice the one
// that its worker has: the slower is counted in most steps.
TEST(Simulate, WhereTasksSpreadTheSlowestOfAMeetingCounts) {
  Hand hand(2);
  const std::uint32_t left = hand.buffer(), right = hand.buffer();
  for (int i = 0; i < 2; ++i) {
    const std::uint32_t mine = i == 0 ? left : right;
    hand.task(1, {{mine, Mode::read_write}});
    hand.list.tasks.back().actions = {
        {.phase = Phase::forward, .chunk = ChunkId{static_cast<std::uint32_t>(i)}}};
  }
  hand.task(1e-6, {{left, Mode::read_write}, {right, Mode::read_write}});
  EXPECT_NEAR(hand.play(60).step_s.front(), 1, 1e-4);
  hand.costs.levels = {0.8, 1.2};
  const double step = hand.play(60).step_s.front();
  EXPECT_GT(step, 1.08);
  EXPECT_LT(step, 1.2);
  EXPECT_EQ(hand.play(60).step_s.front(), step);
  EXPECT_NE(hand.play(60, {.seed = 2}).step_s.front(), step);
}

TEST(Simulate, AnOrderedListIsFollowedThoughAnotherWouldBeShorter) {
  Hand hand(2);
  for (const double seconds : {3.0, 2.0, 1.0}) hand.task(seconds, {{hand.buffer(), Mode::write}});
  EXPECT_NEAR(hand.play().step_s[0], 3, 1e-6);
  hand.list.job = ListKind::train;
  hand.blueprint.plan.placement = Placement::fixed;
  hand.blueprint.plan.order = {{2, 0}, {1}};
  const Simulated made = hand.play(2);
  EXPECT_NEAR(made.step_s[0], 4, 1e-6);
  // In every step the first worker does the third task, then the first.
  for (std::size_t step = 0; step < 2; ++step) {
    const auto& tasks = made.record.tasks;
    EXPECT_EQ(tasks[3 * step].worker, 0);
    EXPECT_EQ(tasks[3 * step + 1].worker, 1);
    EXPECT_EQ(tasks[3 * step + 2].worker, 0);
    EXPECT_LE(tasks[3 * step + 2].end, tasks[3 * step].start);
  }
}

TEST(Simulate, RanksOfSeveralNodesFollowTheirOrders) {
  Hand hand(2);
  for (const double seconds : {3.0, 2.0, 1.0}) hand.task(seconds, {{hand.buffer(), Mode::write}});
  const auto play = [&] {
    return simulate({machines(2),
                     {{&hand.blueprint, &hand.list, &hand.costs}},
                     {{0, 0, {{0, 0}}}, {0, 1, {{0, 0}}}},
                     {}},
                    {.steps = 2});
  };
  EXPECT_NEAR(play().step_s[0], 3, 1e-6);
  hand.list.job = ListKind::train;
  hand.blueprint.plan.placement = Placement::fixed;
  hand.blueprint.plan.order = {{2, 0}, {1}};
  const Simulated made = play();
  EXPECT_NEAR(made.step_s[0], 4, 1e-6);
  // Two steps of two ranks, whose workers count on.
  for (std::size_t i = 0; i < 4; ++i) {
    const auto& tasks = made.record.tasks;
    const auto first = static_cast<std::int32_t>(i % 2 * 2);
    EXPECT_EQ(tasks[3 * i].worker, first);
    EXPECT_EQ(tasks[3 * i + 1].worker, first + 1);
    EXPECT_LE(tasks[3 * i + 2].end, tasks[3 * i].start);
  }
}

TEST(Simulate, OrdersThatDifferBetweenRanksDoNotHoldUpTheirExchanges) {
  // Each computes two gradients and takes their steps; the second rank the other way round.
  Hand one(1), other(1);
  for (Hand* hand : {&one, &other}) {
    const std::uint32_t count = hand == &one ? 0 : 1;
    for (std::uint32_t i = 0; i < 2; ++i) {
      hand->task(1, {{hand->buffer(), Mode::write}});
      hand->list.tasks.back().actions.push_back(
          {.phase = Phase::update, .bucket = BucketId{i == count ? 0U : 1U}});
    }
    hand->list.job = ListKind::train;
    hand->blueprint.plan.placement = Placement::fixed;
    hand->blueprint.plan.order = {{0, 1}};
  }
  ASSERT_GE(one.blueprint.buckets.size(), 1u);
  one.blueprint.buckets.resize(2, one.blueprint.buckets.front());
  other.blueprint.buckets = one.blueprint.buckets;
  const Simulated made = simulate(
      {machines(2),
       {{&one.blueprint, &one.list, &one.costs}, {&other.blueprint, &other.list, &other.costs}},
       {{0, 0, {{0, 0}}}, {1, 1, {{0, 0}}}},
       {}},
      {.steps = 1});
  EXPECT_GT(made.step_s[0], 2);
  EXPECT_LT(made.step_s[0], 2.5);
}

TEST(Simulate, AHybridPlanKeepsEveryChunkWithItsWorker) {
  const Graph graph = fuse(build_model("lenet5"));
  Recipe recipe;
  recipe.batch = 16;
  Plan plan = make_plan(
      graph, recipe,
      {.workers = 2, .chunks = std::vector<std::int64_t>{12, 4}, .segments = std::string("block")});
  plan.placement = Placement::hybrid;
  const Blueprint blueprint = make_blueprint(graph, plan, {}, true);
  const TaskList list = lower(blueprint, ListKind::train);
  const ProfileCosts costs(blueprint, nullptr, "synth");
  const Simulated made =
      simulate({machines(1), {{&blueprint, &list, &costs}}, {{0, 0, {{0, 0}}}}, {}}, {.steps = 3});
  std::size_t seen = 0;
  for (const trace::Task& task : made.record.tasks) {
    const trace::TaskKind& kind = made.record.kind_of(task);
    if (!kind.phases.starts_with("forward") && !kind.phases.starts_with("backward")) continue;
    EXPECT_EQ(task.worker, kind.chunk) << kind.phases;
    ++seen;
  }
  EXPECT_GT(seen, 20u);
}

TEST(Simulate, TheRuntimeTakesItsPartOfEveryTask) {
  Hand hand(1);
  hand.costs.costs.task = 0.1;
  hand.costs.costs.wake = 0.05;
  const std::uint32_t b = hand.buffer();
  for (int i = 0; i < 3; ++i) hand.task(1, {{b, Mode::read_write}});
  // The worker sleeps before the first only.
  EXPECT_NEAR(hand.play().step_s[0], 3 + 3 * 0.1 + 0.05, 1e-6);
}

TEST(Simulate, BuffersCostTimeAndTasksThatBecomeReadyTogetherAreReleasedOneByOne) {
  Hand hand(2);
  hand.costs.costs.access = 0.1;
  hand.costs.costs.release = 0.25;
  const std::uint32_t begin = hand.buffer();
  hand.task(1, {{begin, Mode::write}});
  std::vector<Access> ends;
  for (int i = 0; i < 2; ++i) {
    const std::uint32_t own = hand.buffer();
    hand.task(2, {{begin, Mode::read}, {own, Mode::write}});
    ends.push_back({own, Mode::read});
  }
  hand.task(1, ends);
  // Two buffers each: the second branch is ready half a second after the first, and so is the
  // worker that releases it.
  EXPECT_NEAR(hand.play().step_s[0], (1 + 0.1) + 0.5 + (2 + 0.2) + (1 + 0.2), 1e-6);
}

TEST(Simulate, SubmissionHoldsUpWhoWaitsForIt) {
  Hand hand(1);
  hand.costs.costs.submission = 0.5;
  hand.costs.costs.dependency = 0.25;
  hand.task(0.1, {{hand.buffer(), Mode::write}});
  hand.task(0.1, {{hand.buffer(), Mode::write}});
  EXPECT_NEAR(hand.play().step_s[0], 2 * 0.75 + 0.1, 1e-6);
}

TEST(Simulate, StepsOverlapAsFarAsBuffersHaveCopies) {
  for (const int copies : {1, 2}) {
    Hand hand(2, 2);
    hand.task(1, {{hand.buffer(copies), Mode::read_write}});
    const Simulated made = hand.play(4);
    EXPECT_NEAR(trace::seconds(made.record.marks.back().time), 4.0 / copies, 1e-6) << copies;
  }
}

TEST(Simulate, WithoutACpuOfItsOwnTheSubmitterWakesForSeveralSteps) {
  Hand hand(1, 4);
  hand.costs.costs.step = 0.25;
  hand.task(1, {{hand.buffer(4), Mode::read_write}});
  const auto submitted = [&](bool crowded) {
    std::vector<double> times;
    for (const trace::Task& task : hand.play(6, {.crowded = crowded}).record.tasks)
      times.push_back(trace::seconds(task.submit));
    return times;
  };
  // The first four steps at once; then one for each that ends, or two for every second.
  EXPECT_THAT(submitted(false),
              testing::Pointwise(testing::DoubleNear(1e-6), {0.25, 0.5, 0.75, 1.0, 1.5, 2.5}));
  EXPECT_THAT(submitted(true),
              testing::Pointwise(testing::DoubleNear(1e-6), {0.25, 0.5, 0.75, 1.0, 2.5, 2.75}));
}

// A chain keeps one worker busy; the thread that submits sits on the other's CPU, if there is one.
TEST(Simulate, SubmissionsRobNobodyWhileAWorkerHasNothingToDo) {
  const auto step = [](int workers, double submission) {
    Hand hand(workers, 4);
    hand.costs.costs.submission = submission;
    hand.task(1, {{hand.buffer(), Mode::read_write}});
    return hand.play(30, {.crowded = true}).step_s.front();
  };
  // Nothing is left to be submitted during the last two of the twenty steps that count.
  EXPECT_NEAR(step(1, 1e-3), 1 + 0.9e-3, 1e-6);
  EXPECT_NEAR(step(2, 1e-3), 1, 1e-6);
}

TEST(Simulate, TheRecordIsSoundAndAnalysed) {
  Hand hand(2, 2);
  const std::uint32_t b = hand.buffer();
  for (int i = 0; i < 3; ++i) hand.task(1, {{b, Mode::read_write}});
  const Simulated made = hand.play(6);
  EXPECT_THAT(trace::faults(made.record), testing::IsEmpty());
  EXPECT_EQ(made.record.tasks.size(), 18u);
  EXPECT_EQ(made.record.dependencies.size(), 17u);
  const trace::Analysis found = trace::analyse(made.record, trace::whole_window(made.record));
  EXPECT_EQ(found.steps, 4);  // the first two fill the pipeline
  EXPECT_NEAR(trace::seconds(found.work), 12, 1e-6);
  double joules = 0;
  for (const trace::Counter& each : made.record.counters) joules += each.value;
  EXPECT_NEAR(joules, 18 * (2 * 10 + 20), 1e-2);
}

TEST(Simulate, TheRecordsStepsHaveTheTimeAndEnergyThatIsTold) {
  Hand hand(2, 2);
  const std::uint32_t b = hand.buffer();
  // The last task of a step does not wait for the step before, so the first steps are busier.
  for (int i = 0; i < 3; ++i) hand.task(1, {{b, Mode::read_write}});
  hand.task(2, {{hand.buffer(2), Mode::write}});
  const Simulated made = hand.play(6);
  const trace::Analysis found = trace::analyse(made.record, trace::whole_window(made.record));
  EXPECT_NEAR(trace::seconds(found.wall()) / static_cast<double>(found.steps), made.step_s[0],
              1e-8);
  const auto energy =
      trace::energy_of(made.record.counters, found.window.first_step, found.window.last_step);
  ASSERT_TRUE(energy);
  EXPECT_NEAR(energy->a_step(), made.energy_j[0], 1e-9);
  // All steps together would tell something else: the first ones fill the pipeline.
  EXPECT_GT(std::abs(trace::energy_of(made.record.counters, 0, 0)->a_step() - made.energy_j[0]), 1);
}

TEST(Simulate, ReplicasDrawFromTheIntervalsAndASeedRepeatsThem) {
  Hand hand(1);
  const std::uint32_t b = hand.buffer();
  for (int i = 0; i < 20; ++i) hand.task(1, {{b, Mode::read_write}});
  const auto play = [&](std::uint64_t seed) {
    return hand.play(1, {.replicas = 4, .seed = seed}).step_s;
  };
  const std::vector<double> first = play(1);
  EXPECT_NEAR(first[0], 20, 1e-6) << "the first is the estimate itself";
  for (std::size_t i = 1; i < first.size(); ++i) {
    EXPECT_NE(first[i], first[0]);
    EXPECT_NEAR(first[i], 20, 2);
  }
  EXPECT_EQ(play(1), first);
  EXPECT_NE(play(2), first);
}

// --- several ranks

TEST(Simulate, UnequalRanksWaitForTheSlowerOne) {
  Hand fast(1), slow(1);
  for (Hand* hand : {&fast, &slow}) {
    const std::uint32_t b = hand->buffer();
    hand->task(hand == &fast ? 1 : 2, {{b, Mode::write}});
    hand->task(0.5, {{b, Mode::read_write}});
    hand->list.tasks.back().actions = {{.phase = Phase::update, .bucket = BucketId{0}}};
  }
  const double bytes = static_cast<double>(fast.blueprint.buckets[0].bytes);
  Fleet fleet{
      machines(2),
      {{&fast.blueprint, &fast.list, &fast.costs}, {&slow.blueprint, &slow.list, &slow.costs}},
      {{0, 0, {{0, 0}}}, {1, 1, {{0, 0}}}},
      NodeUpdate::ring};
  const Simulated made = simulate(fleet, {.steps = 1});
  EXPECT_NEAR(made.step_s[0], 2 + bytes / 1e6 + 0.5, 1e-4);
  EXPECT_NEAR(made.exchanged_bytes, 2 * bytes, 1);
  // In proportion to speed, both would have been done after 1.5 s.
  fast.list.tasks[0].flops = slow.list.tasks[0].flops = 1.5;
  EXPECT_NEAR(simulate(fleet, {.steps = 1}).step_s[0], 1.5 + bytes / 1e6 + 0.5, 1e-4);
}

class LoweredLenet {
 public:
  explicit LoweredLenet(const std::string& segments)
      : graph_(fuse(build_model("lenet5"))),
        blueprint(make_blueprint(
            graph_, make_plan(graph_, recipe(), {.workers = 1, .segments = segments}), {}, true)),
        list(lower(blueprint, ListKind::train)) {}

  Fleet fleet(int ranks, NodeUpdate update) {
    Fleet fleet{machines(ranks), {{&blueprint, &list, &costs}}, {}, update};
    for (int rank = 0; rank < ranks; ++rank) fleet.ranks.push_back({0, rank, {{0, 0}}});
    return fleet;
  }

 private:
  static Recipe recipe() {
    Recipe recipe;
    recipe.batch = 8;
    return recipe;
  }
  Graph graph_;

 public:
  Blueprint blueprint;
  TaskList list;
  HandCosts costs;
};

// Message by message and aggregated: the same links carry the same bytes.
TEST(Simulate, TheRecordTellsWhatEachLinkCarried) {
  for (const int message_ranks : {64, 1}) {
    LoweredLenet lenet("block");
    const Simulated made =
        simulate(lenet.fleet(3, NodeUpdate::ring), {.steps = 2, .message_ranks = message_ranks});
    std::set<std::string> names;
    double bytes = 0;
    for (const trace::Link& link : made.record.links) {
      names.insert(trace::link_name(link));
      bytes += static_cast<double>(link.bytes);
    }
    EXPECT_THAT(names, testing::ElementsAre("n-0 → switch", "n-1 → switch", "n-2 → switch",
                                            "switch → n-0", "switch → n-1", "switch → n-2"));
    // Every byte leaves a node and arrives at another.
    EXPECT_NEAR(bytes, 2 * 2 * made.exchanged_bytes, 1e-3 * bytes) << message_ranks;
    EXPECT_THAT(trace::faults(made.record), testing::IsEmpty());
    std::set<std::int32_t> links;
    for (const trace::Transfer& each : made.record.transfers) {
      links.insert(each.link);
      EXPECT_LE(each.end, made.record.marks.back().time);
      EXPECT_GT(each.bytes, 0);
    }
    EXPECT_EQ(links.size(), 6u);
  }
}

TEST(Simulate, RecordsExchangesOfEveryRankIfAsked) {
  LoweredLenet lenet("op");
  const Fleet fleet = lenet.fleet(3, NodeUpdate::ring);
  EXPECT_EQ(worker_count(simulate(fleet, {.steps = 3}).record),
            simulate(fleet, {.steps = 3}).record.workers.size());
  const Simulated made = simulate(fleet, {.steps = 3, .record_exchanges = true});
  EXPECT_THAT(trace::faults(made.record), testing::IsEmpty());
  std::map<std::pair<std::string, std::int64_t>, std::size_t> found;  // by node and step
  for (const trace::Task& task : made.record.tasks) {
    const trace::Worker& lane = made.record.workers[static_cast<std::size_t>(task.worker)];
    if (computes(lane)) continue;
    ++found[{lane.node, task.step}];
    EXPECT_GT(task.end, task.start);
    EXPECT_EQ(made.record.kind_of(task).phases, "exchange");
    EXPECT_GE(made.record.kind_of(task).bucket, 0);
  }
  EXPECT_EQ(found.size(), 9u);
  const std::size_t buckets = fleet.kinds.front().blueprint->buckets.size();
  for (const auto& [where, exchanges] : found) EXPECT_EQ(exchanges, buckets) << where.first;
}

TEST(Simulate, GatheredTasksAreCutWhereGradientsTravel) {
  const LoweredLenet lenet("step");
  ASSERT_EQ(lenet.list.tasks.size(), 1u);
  const TaskList split = split_updates(lenet.list);
  ASSERT_EQ(split.tasks.size(), 2u);
  EXPECT_TRUE(awaited_buckets(split.tasks[0]).empty());
  EXPECT_EQ(awaited_buckets(split.tasks[1]).size(), lenet.blueprint.buckets.size());
  EXPECT_EQ(split.tasks[0].actions.size() + split.tasks[1].actions.size(),
            lenet.list.tasks[0].actions.size());
}

TEST(Simulate, EveryUpdateStrategyFinishesAndMovesItsBytes) {
  LoweredLenet lenet("op");
  double bytes = 0;
  for (const Bucket& bucket : lenet.blueprint.buckets) bytes += static_cast<double>(bucket.bytes);
  for (const auto& [update, share] :
       {std::pair{NodeUpdate::ring, 2.0 * 4}, std::pair{NodeUpdate::tree, 2.0 * 4},
        std::pair{NodeUpdate::server_cpu, 2.0 * 4}, std::pair{NodeUpdate::server_gpu, 2.0 * 4}}) {
    const Simulated made = simulate(lenet.fleet(5, update), {.steps = 2});
    EXPECT_NEAR(made.exchanged_bytes, share * bytes, 1) << node_update_name(update);
    EXPECT_THAT(trace::faults(made.record), testing::IsEmpty());
    EXPECT_GT(made.step_s[0], 0);
  }
}

TEST(Simulate, AServerThatSendsLastHidesNothingBehindBackward) {
  LoweredLenet lenet("op");
  Fleet fleet = lenet.fleet(3, NodeUpdate::server_cpu);
  const double by_bucket = simulate(fleet, {.steps = 2}).step_s[0];
  fleet.server_sends_last = true;
  const double last = simulate(fleet, {.steps = 2}).step_s[0];
  EXPECT_GE(last, by_bucket);
  EXPECT_NEAR(simulate(fleet, {.steps = 2, .message_ranks = 1}).step_s[0] / last, 1, 0.05);
}

TEST(Simulate, TheSameFleetTakesTheSameTimeAggregatedOrNot) {
  LoweredLenet lenet("op");
  const Fleet fleet = lenet.fleet(6, NodeUpdate::ring);
  const double each = simulate(fleet, {.steps = 2}).step_s[0];
  EXPECT_NEAR(simulate(fleet, {.steps = 2, .message_ranks = 1}).step_s[0] / each, 1, 0.01);
}

}  // namespace
}  // namespace regatta::sim
