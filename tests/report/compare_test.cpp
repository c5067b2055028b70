#include "report/compare.h"

#include <gtest/gtest.h>

#include "report/overlay.h"
#include "trace/toy_run.h"

namespace regatta {
namespace {

using trace::Record;
using trace::RecordBuilder;
using trace::Time;

// Two workers, two steps of a forward each and a reduction that waits for both.
Record run(Time first, Time second, bool swapped = false) {
  RecordBuilder builder(2);
  Time now = 0;
  for (std::int64_t step = 1; step <= 2; ++step) {
    const int one = swapped ? 1 : 0;
    const auto a = builder.task(one, step, "forward", now, now + first);
    const auto b = builder.task(1 - one, step, "backward", now, now + second);
    const Time met = now + std::max(first, second);
    builder.task(0, step, "reduce", met, met + 100, {a, b});
    now = met + 100;
    builder.record.marks.push_back({"step", step, now});
    builder.record.counters.push_back({"energy cpu", "J", "estimate", step, now, 2.0});
  }
  for (trace::TaskKind& kind : builder.record.kinds)
    if (kind.phases != "reduce") kind.chunk = kind.phases == "forward" ? 0 : 1;
  return builder.record;
}

bool blames(const Comparison& comparison, const std::string& task, const std::string& why) {
  for (const Difference& each : comparison.differences)
    if (each.task.starts_with(task) && each.why.starts_with(why)) return true;
  return false;
}

TEST(Compare, PutsTheStepTimesSideBySide) {
  Planned planned;
  planned.step_s = 1000e-9;
  planned.bound = 800e-9;
  const Comparison made = compare(run(1400, 900), run(900, 900), planned);
  const CompareRow* step = made.find("step_s");
  ASSERT_NE(step, nullptr);
  EXPECT_NEAR(*step->measured, 1500e-9, 1e-12);
  EXPECT_NEAR(*step->simulated, 1000e-9, 1e-12);
  EXPECT_EQ(step->planned, planned.step_s);
  EXPECT_EQ(step->bound, planned.bound);
  // All work on two workers: nothing ties one of these steps to the next.
  const CompareRow* order = made.find("best order of these tasks");
  ASSERT_NE(order, nullptr);
  EXPECT_NEAR(*order->measured, 1200e-9, 1e-12);
  EXPECT_FALSE(order->bound);
  EXPECT_NEAR(*made.find("energy_j")->measured, 2.0, 1e-9);
}

TEST(Compare, ShowsNoBoundWhereTheProfileIsOutdated) {
  Planned planned;
  planned.bound = 1600e-9;  // the measured step takes 1500 ns
  const Comparison faster = compare(run(1400, 900), run(2400, 900), planned);
  EXPECT_TRUE(faster.profile_outdated);
  EXPECT_FALSE(faster.find("step_s")->bound);
  EXPECT_NE(table_of(faster).find("it is outdated"), std::string::npos);

  planned.bound = 100e-9;
  planned.least_work_s = 2400e-9;  // forward and backward took 2300 ns together
  EXPECT_TRUE(compare(run(1400, 900), run(1400, 900), planned).profile_outdated);
  planned.least_work_s = 2200e-9;
  EXPECT_FALSE(compare(run(1400, 900), run(1400, 900), planned).profile_outdated);
}

TEST(Compare, NamesTheTaskThatWasSlowerThanTheProfileSaid) {
  const Comparison made = compare(run(1400, 900), run(900, 900), {});
  ASSERT_FALSE(made.differences.empty());
  EXPECT_TRUE(made.differences.front().task.starts_with("forward"));
  EXPECT_EQ(made.differences.front().why, "slower than the profile said");
  EXPECT_NEAR(made.differences.front().seconds, 500e-9, 1e-12);
}

TEST(Compare, TellsHowLongTheFirstWaitsForTheLastAtAPointOfSynchronisation) {
  const Comparison made = compare(run(1400, 900), run(900, 900), {});
  const CompareRow* sync = nullptr;
  for (const CompareRow& row : made.rows)
    if (row.quantity.starts_with("sync reduce")) sync = &row;
  ASSERT_NE(sync, nullptr);
  EXPECT_NEAR(*sync->measured, 500e-9, 1e-12);
  EXPECT_NEAR(*sync->simulated, 0, 1e-12);
}

TEST(Compare, SaysWhatRanOnAnotherWorkerThanSimulated) {
  EXPECT_TRUE(
      blames(compare(run(900, 900, true), run(900, 900), {}), "forward", "ran on another worker"));
  EXPECT_FALSE(
      blames(compare(run(900, 900), run(900, 900), {}), "forward", "ran on another worker"));
}

TEST(Compare, SaysThatOthersTookCpuTimeOfTheMeasuredRun) {
  Record measured = run(1400, 900);
  for (const std::int64_t step : {1, 2})
    measured.counters.push_back(
        {trace::taken_counter, "share", "measured", step, 1500 * step, 0.2});
  const Comparison made = compare(measured, run(900, 900), {});
  EXPECT_NE(table_of(made).find("disturbed: others took 20% of the workers' CPU time"),
            std::string::npos);
  EXPECT_NEAR(to_json(made)["taken_by_others"].get<double>(), 0.2, 1e-9);
}

TEST(Compare, NamesWorkersByNodeAndFoldsMoreThanAScreenShows) {
  RecordBuilder builder(60);
  for (int w = 0; w < 60; ++w) {
    builder.record.workers[static_cast<std::size_t>(w)].name = "cpu 0";
    builder.record.workers[static_cast<std::size_t>(w)].node = "n" + std::to_string(w);
    builder.task(w, 1, "forward", 0, 1000 - w);  // the later, the idler
  }
  builder.record.marks.push_back({"step", 1, 1000});
  const Comparison made = compare(builder.record, builder.record, {});
  EXPECT_NE(made.find("busy n59 · cpu 0"), nullptr);
  const std::string table = table_of(made);
  EXPECT_NE(table.find("busy n0 · cpu 0"), std::string::npos);
  EXPECT_NE(table.find("busy n59 · cpu 0"), std::string::npos);
  EXPECT_EQ(table.find("busy n30 · cpu 0"), std::string::npos);
  EXPECT_NE(table.find("(44 workers between the busiest and the idlest; --json FILE has all"),
            std::string::npos);
}

TEST(Compare, TheJsonHasTheRowsThatArePromised) {
  const Json json = to_json(compare(run(1400, 900), run(900, 900), {}));
  for (const Json& row : json["rows"])
    for (const char* key : {"quantity", "bound", "planned", "simulated", "measured"})
      EXPECT_TRUE(row.contains(key)) << row;
  EXPECT_EQ(json["rows"][0]["quantity"], "step_s");
  EXPECT_EQ(json["rows"][1]["quantity"], "energy_j");
}

TEST(Overlay, SimulatedWorkersLieUnderTheMeasuredOnes) {
  Record record = run(1400, 900);
  trace::Analysis analysis = trace::analyse(record, trace::whole_window(record));
  const std::size_t tasks = record.tasks.size();
  overlay(record, analysis, run(900, 900));
  ASSERT_EQ(record.workers.size(), 4u);
  EXPECT_EQ(record.workers[2].kind, simulated_kind);
  EXPECT_EQ(record.tasks.size(), 2 * tasks);
  ASSERT_EQ(analysis.workers.size(), 4u);
  // Busy for 2000 of 2000 simulated nanoseconds, which stand beside 3000 measured ones.
  EXPECT_NEAR(static_cast<double>(analysis.workers[2].busy), 3000, 2);
  EXPECT_EQ(trace::faults(record), std::vector<std::string>{});
}

}  // namespace
}  // namespace regatta
