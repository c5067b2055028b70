#include "trace/analysis.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

#include "support/error_text.h"
#include "trace/toy_run.h"

namespace regatta::trace {
namespace {

Time total(const std::array<Time, cause_count>& causes) {
  Time sum = 0;
  for (const Time each : causes) sum += each;
  return sum;
}

void expect_sums(const Record& record, const Analysis& found) {
  const Time wall = found.wall();
  Time idle = 0, work = 0;
  for (std::size_t w = 0; w < found.workers.size(); ++w) {
    const WorkerUse& use = found.workers[w];
    EXPECT_EQ(use.busy + use.idle + use.overhead, wall) << record.workers[w].name;
    EXPECT_EQ(total(use.causes), use.idle);
    EXPECT_GE(std::min({use.busy, use.idle, use.overhead}), 0);
    idle += use.idle;
    work += use.busy;
  }
  EXPECT_EQ(total(found.causes), idle);
  EXPECT_EQ(found.work, work);
  Time covered = 0;
  for (std::size_t i = 0; i < found.idle.size(); ++i) {
    const IdleInterval& each = found.idle[i];
    EXPECT_LT(each.start, each.end);
    EXPECT_GE(each.start, found.window.start);
    EXPECT_LE(each.end, found.window.end);
    if (i > 0 && found.idle[i - 1].worker == each.worker) {
      EXPECT_LE(found.idle[i - 1].end, each.start);
    }
    covered += each.end - each.start;
  }
  EXPECT_EQ(covered, idle);
  EXPECT_LE(found.critical, wall);
  EXPECT_LE(found.bound, wall);
  EXPECT_LE(found.efficiency(), 1.0);
}

TEST(TraceAnalysis, EveryNanosecondOfEveryWorkerIsAccountedFor) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(seed);
    const Record record = toy_run({.seed = seed,
                                   .workers = 1 + static_cast<int>(seed % 7),
                                   .steps = 1 + static_cast<int>(seed % 5),
                                   .tasks_per_step = 1 + static_cast<int>(seed * 7 % 60),
                                   .central_queue = seed % 2 == 0,
                                   .transfers = seed % 3 == 0});
    ASSERT_EQ(faults(record), std::vector<std::string>{});
    const Window whole = whole_window(record);
    const Analysis found = analyse(record, whole);
    expect_sums(record, found);
    EXPECT_EQ(found.tasks, static_cast<std::int64_t>(record.tasks.size()) -
                               std::ranges::count_if(record.tasks, [&](const Task& task) {
                                 return task.end <= whole.start || task.start >= whole.end;
                               }));
    // Any window, also one that cuts tasks.
    const Time third = whole.start + found.wall() / 3;
    expect_sums(record, analyse(record, {third, whole.end - found.wall() / 7}));
    expect_sums(record, analyse(record, {third, third}));
  }
}

TEST(TraceAnalysis, TheCriticalPathIsAChainOfDependentTasks) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const Record record = toy_run({.seed = seed});
    const Analysis found = analyse(record, whole_window(record));
    Time length = 0;
    for (std::size_t i = 0; i < found.critical_path.size(); ++i) {
      length += record.tasks[static_cast<std::size_t>(found.critical_path[i])].duration();
      if (i == 0) continue;
      EXPECT_TRUE(std::ranges::any_of(record.dependencies, [&](const Dependency& each) {
        return each.task == found.critical_path[i] && each.on == found.critical_path[i - 1];
      }));
    }
    EXPECT_EQ(length, found.critical);
  }
}

Cause only_cause(const Analysis& found, int worker) {
  const auto first = std::ranges::find(found.idle, worker, &IdleInterval::worker);
  return first == found.idle.end() ? Cause::outside : first->cause;
}

TEST(TraceAnalysis, WaitingForATaskNamesIt) {
  RecordBuilder run(2);
  const auto slow = run.task(0, 1, "forward", 0, 100);
  run.task(1, 1, "forward", 0, 40);
  run.task(1, 1, "backward", 100, 120, {slow});
  const Analysis found = analyse(run.record, {0, 100});
  ASSERT_EQ(found.idle.size(), 1u);
  EXPECT_EQ(found.idle[0].cause, Cause::dependency);
  EXPECT_EQ(found.idle[0].task, slow);
  EXPECT_EQ(found.idle[0].start, 40);
  EXPECT_EQ(found.idle[0].end, 100);
}

TEST(TraceAnalysis, TheSlowestChunkIsToBlameAtAMeetingPoint) {
  RecordBuilder run(2);
  const auto slow = run.task(0, 1, "forward", 0, 100);
  const auto quick = run.task(1, 1, "forward", 0, 40);
  const auto combine = run.task(0, 1, "combine", 100, 110, {slow, quick});
  run.task(1, 1, "forward", 110, 150, {combine});
  const Analysis found = analyse(run.record, {0, 110});
  ASSERT_EQ(found.idle.size(), 2u);
  EXPECT_EQ(found.idle[0].cause, Cause::meeting);
  EXPECT_EQ(found.idle[0].task, slow);
  EXPECT_EQ(found.idle[1].cause, Cause::meeting);
  EXPECT_EQ(found.idle[1].task, combine);
}

TEST(TraceAnalysis, ReductionTailAndTooFewTasksAreToldApart) {
  RecordBuilder run(3);
  const auto slow = run.task(0, 1, "forward+backward", 0, 100);
  const auto quick = run.task(1, 1, "forward+backward", 0, 60);
  const auto update = run.task(0, 1, "reduce+update", 100, 130, {slow, quick});
  for (int w = 0; w < 3; ++w) run.task(w, 2, "forward+backward", 130, 150, {update});
  const Analysis found = analyse(run.record, {0, 150});
  const auto& causes = found.workers[1].causes;
  EXPECT_EQ(causes[static_cast<std::size_t>(Cause::tail)], 40);
  EXPECT_EQ(causes[static_cast<std::size_t>(Cause::reduction)], 30);
  EXPECT_EQ(found.workers[2].causes[static_cast<std::size_t>(Cause::too_few_tasks)], 100);
  EXPECT_EQ(found.workers[2].causes[static_cast<std::size_t>(Cause::reduction)], 30);
}

TEST(TraceAnalysis, AMissingSampleIsTheLoadersFault) {
  RecordBuilder run(2);
  const auto load = run.task(0, 1, "load", 0, 70);
  run.task(1, 1, "forward", 70, 90, {load});
  EXPECT_EQ(only_cause(analyse(run.record, {0, 90}), 1), Cause::loader);
}

TEST(TraceAnalysis, ReadyWorkBehindATaskThatRanLongerThanPredictedIsTold) {
  RecordBuilder run(2);
  const auto late = run.task(0, 1, "forward", 0, 100);
  run.record.tasks.back().predicted = 20;
  run.task(0, 1, "forward", 100, 120);  // ready from the start
  run.task(1, 1, "forward", 0, 30);
  run.task(1, 1, "backward", 120, 130, {1});
  const Analysis found = analyse(run.record, {0, 130});
  const auto first = std::ranges::find(found.idle, 1, &IdleInterval::worker);
  ASSERT_NE(first, found.idle.end());
  EXPECT_EQ(first->cause, Cause::queued);
  EXPECT_EQ(first->task, late);
  EXPECT_TRUE(first->overran);
  EXPECT_EQ(first->start, 30);
  EXPECT_EQ(first->end, 100);
}

TEST(TraceAnalysis, ALateSubmissionIsTold) {
  RecordBuilder run(1);
  run.task(0, 1, "forward", 0, 10);
  run.task(0, 1, "forward", 55, 60, {0});
  run.record.tasks.back().submit = run.record.tasks.back().ready = 50;
  const Analysis found = analyse(run.record, {0, 60});
  EXPECT_EQ(only_cause(found, 0), Cause::submission);
  EXPECT_EQ(found.workers[0].idle, 40);
  EXPECT_EQ(found.workers[0].overhead, 5);
}

TEST(TraceAnalysis, DataOnItsWayIsATransferOnlyWhereThereAreLinks) {
  RecordBuilder run(1);
  run.task(0, 1, "forward", 0, 10);
  run.task(0, 1, "forward", 40, 60);
  run.record.tasks.back().acquire = 25;
  EXPECT_EQ(analyse(run.record, {0, 60}).workers[0].overhead, 30);
  run.record.links.push_back({"ram", "gpu", 8, 1});
  const Analysis found = analyse(run.record, {0, 60});
  EXPECT_EQ(found.workers[0].overhead, 5);
  EXPECT_EQ(found.workers[0].causes[static_cast<std::size_t>(Cause::transfer)], 25);
}

TEST(TraceAnalysis, ASerialTaskGainsItsLengthAndASharedOneItsPart) {
  RecordBuilder run(4);
  const auto serial = run.task(0, 1, "combine", 0, 100);
  for (int w = 0; w < 4; ++w) run.task(w, 1, "forward", 100, 200, {serial});
  const Analysis found = analyse(run.record, {0, 200});
  ASSERT_EQ(found.kinds.size(), 2u);
  for (const KindUse& use : found.kinds) EXPECT_NEAR(use.gain_s, 100e-9, 1e-15);
  EXPECT_EQ(found.critical, 200);
  EXPECT_EQ(found.bound, 200);
}

TEST(TraceAnalysis, AWindowOfStepsRunsFromEndToEnd) {
  const Record record = toy_run({.steps = 5});
  const Window window = window_of_steps(record, 2, 4);
  EXPECT_EQ(window.start, record.marks[0].time);
  EXPECT_EQ(window.end, record.marks[3].time);
  EXPECT_EQ(analyse(record, window).steps, 3);
  EXPECT_EQ(error_text([&] { window_of_steps(record, 8, 9); }),
            "steps 8:9 are not in the record, which has 1:5");
  EXPECT_EQ(error_text([&] { window_of_steps(Record{}, 1, 1); }),
            "steps 1:1 are not in the record: it has no steps");
}

TEST(TraceAnalysis, AnEmptyRecordIsNoTrouble) {
  const Analysis found = analyse(Record{}, whole_window(Record{}));
  EXPECT_EQ(found.wall(), 0);
  EXPECT_EQ(found.efficiency(), 0);
}

// Quadratic work anywhere would take hours.
TEST(TraceAnalysis, AMillionTasksTakeSeconds) {
  const Record record =
      toy_run({.workers = 16, .steps = 1000, .tasks_per_step = 1000, .central_queue = false});
  const std::clock_t begin = std::clock();
  const Analysis found = analyse(record, whole_window(record));
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 20);
  EXPECT_GT(found.tasks, 900'000 / 2);
  for (const WorkerUse& use : found.workers)
    EXPECT_EQ(use.busy + use.idle + use.overhead, found.wall());
}

}  // namespace
}  // namespace regatta::trace
