#include "exec/observe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>

#include "models/models.h"
#include "profile/signature.h"
#include "support/executor_run.h"

namespace regatta {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

// Times of lenet5's step, made up task by task.
class Observing : public testing::Test {
 protected:
  explicit Observing(int chunks = 2)
      : graph(fuse(build_model("lenet5"))),
        blueprint(made(graph, chunks)),
        list(lower(blueprint, ListKind::train)),
        names(blueprint, "synth:1x28x28/10@64", Pass::train),
        times(list.tasks.size()) {}

  static Blueprint made(const Graph& graph, int chunks) {
    return make_blueprint(
        graph, plan_for(graph, 64, {.workers = 2, .chunks = std::vector<std::int64_t>{chunks}}), {},
        true);
  }

  // Each of its operators takes ten microseconds, of which the thread ran `own`.
  void run(std::size_t t, int worker, int start_us, double own = 1) {
    TaskTimes& task = times[t];
    task.worker = worker;
    task.depth = Depth::operators;
    auto now = begin + microseconds(start_us);
    task.submit = begin;
    task.start = now;
    for (const Action& action : list.tasks[t].actions)
      for (std::size_t i = 0; i < names.pieces(action, 32).size(); ++i) {
        task.operators.push_back(
            {nullptr, action.phase, Work::forward, now, now + microseconds(10), nanoseconds{0}});
        now += microseconds(10);
      }
    task.end = now;
    task.cpu = nanoseconds(static_cast<std::int64_t>(
        own * static_cast<double>(nanoseconds(task.end - task.start).count())));
  }
  std::vector<Observation> seen() const {
    const std::vector<ChunkSpan> spans = share_out(blueprint.chunks, 64);
    return observations_of({blueprint, list, spans, times}, names);
  }
  // Task 2 runs once; tells how long it took.
  nanoseconds length_of_one() {
    run(2, 0, 0);
    return times[2].end - times[2].start;
  }
  // Both chunks' tasks begin together.
  void take(std::size_t t, nanoseconds length, std::optional<nanoseconds> own = {}) {
    times[t].start = begin;
    times[t].end = begin + length;
    times[t].cpu = own.value_or(length);
  }
  std::size_t pieces(std::size_t t) const {
    std::size_t count = 0;
    for (const Action& action : list.tasks[t].actions) count += names.pieces(action, 32).size();
    return count;
  }

  TraceClock::time_point begin = TraceClock::now();
  Graph graph;
  Blueprint blueprint;
  TaskList list;
  CostNames names;
  std::vector<TaskTimes> times;
};

// Tasks 2 and 3 are those of the two chunks; the second takes twice as long.
TEST_F(Observing, HowFarTasksSpreadIsToldInEqualParts) {
  const std::vector<ChunkSpan> spans = share_out(blueprint.chunks, 64);
  const nanoseconds length = length_of_one();
  SpreadMeter meter;
  for (int step = 0; step < 40; ++step) {
    take(2, length);
    take(3, 2 * length);
    meter.add({blueprint, list, spans, times});
    EXPECT_EQ(meter.observations(names.setting(GroupId{0}), 2).empty(), step < 31)
        << "few tell nothing";
  }
  EXPECT_FALSE(meter.enough()) << "if half of them turn out to be held up";
  for (int step = 40; step < 64; ++step) meter.add({blueprint, list, spans, times});
  EXPECT_TRUE(meter.enough());
  const std::vector<Observation> all = meter.observations(names.setting(GroupId{0}), 2);
  ASSERT_EQ(all.size(), std::size_t{spread_levels});
  for (std::size_t level = 0; level < all.size(); ++level) {
    EXPECT_EQ(all[level].signature, spread_signature(names.setting(GroupId{0})));
    EXPECT_EQ(all[level].size, static_cast<double>(level + 1));
    EXPECT_EQ(all[level].busy, 2);
    EXPECT_NEAR(all[level].seconds, level < 8 ? 1 : 2, 1e-3);
  }
}

// Delays of single tasks count for the spread, however long; a step held up as a whole does not.
TEST_F(Observing, HowFarTasksSpreadIsToldByTheClock) {
  const std::vector<ChunkSpan> spans = share_out(blueprint.chunks, 64);
  const nanoseconds length = length_of_one(), none{0};
  // One of two is `late`, of which its thread had `own` on the CPU; `rarely` comes three times.
  const auto slowest = [&](nanoseconds late, nanoseconds own, nanoseconds rarely) {
    SpreadMeter meter;
    for (int step = 0; step < 160; ++step) {
      take(2, length);
      take(3, length + late + (step % 50 == 7 ? rarely : none), length + own);
      meter.add({blueprint, list, spans, times});
    }
    return meter.observations(names.setting(GroupId{0}), 2).back().seconds;
  };
  EXPECT_NEAR(slowest(2 * length, 2 * length, none), 3, 1e-3);
  EXPECT_NEAR(slowest(2 * length, none, none), 3, 1e-3) << "kept by a neighbour";
  const nanoseconds slice = std::chrono::milliseconds(3);
  EXPECT_NEAR(slowest(slice, none, none), 1 + 1.0 * slice / length, 1e-2) << "however long";
  EXPECT_NEAR(slowest(2 * length, none, std::chrono::seconds(5)), 3, 1e-3) << "asleep";
  blueprint.plan.cpus = 1;
  EXPECT_NEAR(slowest(2 * length, none, none), 1, 1e-3) << "kept by the thread that submits";
}

// The time of a typical step does not know of them either.
TEST_F(Observing, AStepThatWasHeldUpTellsNothingOfSpread) {
  const std::vector<ChunkSpan> spans = share_out(blueprint.chunks, 64);
  const nanoseconds length = length_of_one();
  SpreadMeter meter;
  for (int step = 0; step < 160; ++step) {
    take(2, length * (step % 4 == 0 ? 2 : 1));
    take(3, length);
    meter.add({blueprint, list, spans, times});
  }
  const std::vector<Observation> all = meter.observations(names.setting(GroupId{0}), 2);
  ASSERT_EQ(all.size(), std::size_t{spread_levels});
  EXPECT_NEAR(all.back().seconds, 1, 1e-3);
}

// Tasks 2 and 3 of the list are the forward and backward of the two chunks.
TEST_F(Observing, TasksSideBySideAreInCompanyAndOthersAlone) {
  run(2, 0, 0);
  run(3, 1, 0);
  std::vector<Observation> all = seen();
  EXPECT_EQ(all.size(), pieces(2)) << "the other chunk's are alike";
  for (const Observation& each : all) {
    EXPECT_EQ(each.busy, 2);
    EXPECT_EQ(each.size, 32) << each.signature;  // samples of a chunk
    EXPECT_NEAR(each.seconds, 10e-6, 1e-9);
  }
  times[3] = {};
  run(3, 1, 100000);
  for (const Observation& each : seen()) EXPECT_EQ(each.busy, 1);
}

TEST_F(Observing, WorkThatSawItsNeighbourLeaveIsLeftOut) {
  run(2, 0, 0);
  // The neighbour's task begins in the middle of one operator.
  run(3, 1, 15);
  times[2].operators[1].cpu = microseconds(1);  // would be seen in a mean
  for (const Observation& each : seen()) {
    EXPECT_TRUE(each.busy == 1 || each.busy == 2);
    EXPECT_NEAR(each.seconds, 10e-6, 1e-9);
  }
  // Alone are the first of one and the last of the other.
  EXPECT_EQ(std::ranges::count(seen(), 1, &Observation::busy), 2);
}

// A step is the sum of all: where the same work is fast here and slow there, neither is typical.
TEST_F(Observing, WorkOfOneKindCostsTheMeanOfAStep) {
  run(2, 0, 0);
  run(3, 0, 100000);
  for (OperatorTime& each : times[3].operators) each.end = each.start + microseconds(40);
  times[3].cpu += microseconds(30);
  times[3].end += microseconds(30);
  ASSERT_EQ(seen().size(), pieces(2));
  for (const Observation& each : seen()) EXPECT_NEAR(each.seconds, 25e-6, 1e-9);
}

// A short batch leaves a chunk without samples; what its task takes is not that of one sample.
TEST_F(Observing, AGpusChunkWithoutSamplesTellsNothing) {
  const Blueprint on_gpu = make_blueprint(
      graph,
      plan_for(
          graph, 64,
          {.workers = 2, .chunks = std::vector<std::int64_t>{2}, .devices = {DeviceKind::cuda}}),
      {}, true);
  const TaskList tasks = lower(on_gpu, ListKind::train);
  const CostNames its_names(on_gpu, "synth:1x28x28/10@64", Pass::train);
  std::vector<TaskTimes> took(tasks.tasks.size());
  for (std::size_t t = 0; t < took.size(); ++t)
    if (its_names.one_piece(tasks.tasks[t]) && of_chunk(tasks.tasks[t].actions.front().phase)) {
      took[t].start = begin;
      took[t].end = begin + microseconds(100);
    }
  const std::vector<ChunkSpan> spans{{0, 5}, {5, 0}};
  const std::vector<Observation> found = observations_of({on_gpu, tasks, spans, took}, its_names);
  ASSERT_FALSE(found.empty());
  for (const Observation& each : found) EXPECT_EQ(each.size, 5);
}

// Operators that are fast and slow by turns: neither is typical, but the mean of both. A step that
// was held up is none of them.
TEST_F(Observing, OfStepsInARowTheMeanCountsWithoutThoseHeldUp) {
  StepMean mean;
  const std::vector<ChunkSpan> spans = share_out(blueprint.chunks, 64);
  run(2, 0, 0);
  const TaskTimes usual = times[2];
  for (int step = 0; step < 9; ++step) {
    const bool held_up = step == 4;
    times[2] = usual;
    std::vector<Observation> seen = this->seen();
    ASSERT_FALSE(seen.empty());
    times[2].end += microseconds(held_up ? 1000 : 0);
    for (Observation& each : seen) each.seconds = held_up ? 1 : step % 2 == 0 ? 10e-6 : 30e-6;
    mean.add({blueprint, list, spans, std::span(times).subspan(2, 1)}, std::move(seen));
  }
  ASSERT_EQ(mean.get().size(), pieces(2));
  for (const Observation& each : mean.get()) EXPECT_NEAR(each.seconds, 20e-6, 1e-9);
  EXPECT_TRUE(StepMean().get().empty());
}

TEST_F(Observing, ATaskThatAnotherProcessInterruptedIsLeftOut) {
  run(2, 0, 0, 0.7);
  EXPECT_TRUE(seen().empty());
}

TEST_F(Observing, ATaskThatWasBrieflyInterruptedCountsAsLongAsItRan) {
  run(2, 0, 0, 1.0);
  const std::vector<Observation> whole = seen();
  times[2].operators.clear();
  run(2, 0, 0, 0.9);
  const std::vector<Observation> robbed = seen();
  ASSERT_EQ(robbed.size(), whole.size());
  ASSERT_FALSE(whole.empty());
  for (std::size_t i = 0; i < whole.size(); ++i)
    EXPECT_NEAR(robbed[i].seconds, 0.9 * whole[i].seconds, 1e-9);
}

// Its data lie in the caches of all, though the others wait for it.
TEST_F(Observing, WhereWorkersMeetItIsTheSameWithManyOrFewAtWork) {
  std::size_t reduce = 0;
  while (list.tasks[reduce].actions.front().phase != Phase::reduce) ++reduce;
  run(reduce, 0, 0);
  const std::vector<Observation> all = seen();
  ASSERT_FALSE(all.empty());
  for (const Observation& each : all) EXPECT_EQ(each.busy, 2) << each.signature;
}

TEST_F(Observing, OfALargeOperatorTheThreadsOwnTimeCounts) {
  run(2, 0, 0, 0.5);
  for (OperatorTime& each : times[2].operators) each.cpu = microseconds(4);
  ASSERT_EQ(seen().size(), pieces(2));
  for (const Observation& each : seen()) EXPECT_NEAR(each.seconds, 4e-6, 1e-9);
}

TEST_F(Observing, WhatIsTheSameForAllSamplesCanBeLeftOut) {
  const std::vector<ChunkSpan> spans = share_out(blueprint.chunks, 64);
  for (std::size_t t = 0; t < list.tasks.size(); ++t) run(t, 0, static_cast<int>(t) * 1000);
  const auto reductions = [](const std::vector<Observation>& all) {
    return std::ranges::count_if(all, [](const Observation& each) {
      return each.signature.find("reduce") != std::string::npos ||
             each.signature.find("update") != std::string::npos;
    });
  };
  EXPECT_GT(reductions(seen()), 0);
  const auto of_samples = observations_of({blueprint, list, spans, times}, names, false);
  EXPECT_EQ(reductions(of_samples), 0);
  EXPECT_GT(of_samples.size(), seen().size() / 2);
}

TEST_F(Observing, ATaskThatBrokeOffTeachesNothing) {
  run(2, 0, 0);
  times[2].operators.pop_back();
  EXPECT_TRUE(seen().empty());
}

TEST_F(Observing, TheGapBetweenTwoTasksOfAWorkerIsTheRuntimes) {
  // One worker: all tasks in a row, three microseconds between them.
  int now = 0;
  for (std::size_t t = 0; t < list.tasks.size(); ++t) {
    run(t, 0, now);
    now += static_cast<int>(10 * pieces(t)) + 3;
    times[t].submit = begin - std::chrono::seconds(1) + microseconds(2 * t);
  }
  const std::vector<ChunkSpan> spans = share_out(blueprint.chunks, 64);
  Profile profile;
  for (int i = 0; i < 4; ++i) profile.learn(start_observations_of({blueprint, list, spans, times}));
  EXPECT_NEAR(profile.runtime().task, 3e-6, 1e-9);
}

TEST_F(Observing, TheTimeFromOneSubmissionToTheNextIsTheFirstOnes) {
  auto now = begin;
  for (std::size_t t = 0; t < list.tasks.size(); ++t) {
    times[t].submit = now;
    now += nanoseconds(1000 + 300 * list.tasks[t].accesses.size());
  }
  const std::vector<ChunkSpan> spans = share_out(blueprint.chunks, 64);
  Profile profile;
  for (int i = 0; i < 4; ++i)
    profile.learn(submission_observations_of({blueprint, list, spans, times}));
  EXPECT_NEAR(profile.runtime().submission, 1e-6, 1e-8);
  EXPECT_NEAR(profile.runtime().dependency, 3e-7, 1e-8);
}

// Three chunks wait for one meeting; each buffer of theirs takes the runtime half a microsecond.
TEST(Starts, OfWorkersThatWaitTheFirstTellsOfWakingAndTheOthersOfReleasing) {
  Graph graph = fuse(build_model("resnet18", {.input = Shape{3, 32, 32}, .classes = 10}));
  const Blueprint blueprint = make_blueprint(
      graph, plan_for(graph, 12, {.workers = 3, .chunks = std::vector<std::int64_t>{3}}), {}, true);
  const TaskList list = lower(blueprint, ListKind::train);
  std::vector<TaskTimes> times(list.tasks.size());
  const auto begin = TraceClock::now();
  auto now = begin + microseconds(100);
  // Chunks run side by side, all else alone on worker 0; a microsecond between tasks, two more for
  // the first that waits.
  for (std::size_t t = 0; t < list.tasks.size(); ++t) {
    const Action& first = list.tasks[t].actions.front();
    const bool chunk = of_chunk(first.phase);
    const int worker = chunk ? static_cast<int>(first.chunk.value) : 0;
    const double buffers = static_cast<double>(list.tasks[t].accesses.size());
    auto start = now + microseconds(1);
    if (chunk && worker > 0)
      start += microseconds(2) + nanoseconds(static_cast<int>(500 * buffers * (worker - 1)));
    times[t].worker = worker;
    times[t].submit = begin;
    times[t].start = start;
    times[t].end = now + microseconds(60);
    if (!chunk || worker == 2) now = times[t].end;
  }
  const std::vector<ChunkSpan> spans = share_out(blueprint.chunks, 12);
  Profile profile;
  for (int i = 0; i < 4; ++i) profile.learn(start_observations_of({blueprint, list, spans, times}));
  EXPECT_NEAR(profile.runtime().task, 1e-6, 1e-8);
  EXPECT_NEAR(profile.runtime().wake, 2e-6, 1e-8);
  EXPECT_NEAR(profile.runtime().release, 5e-7, 1e-8);
}

}  // namespace
}  // namespace regatta
