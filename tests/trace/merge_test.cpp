// Records of several nodes as one.
#include "trace/merge.h"

#include <gtest/gtest.h>

#include "support/error_text.h"
#include "trace/analysis.h"
#include "trace/doctor.h"
#include "trace/toy_run.h"

namespace regatta::trace {
namespace {

// A worker that computes, an exchange in a lane of its own, and an update that waits for it.
Record node_record(Time clock_begin, Time computes_until, Time exchanged_at) {
  RecordBuilder builder(2);
  builder.record.workers[1].kind = network_kind;
  const auto reduce = builder.task(0, 1, "backward", 0, computes_until);
  const auto exchange = builder.task(1, 1, "exchange", computes_until, exchanged_at, {reduce});
  builder.task(0, 1, "update", exchanged_at, exchanged_at + 10, {exchange});
  builder.record.marks.push_back({"step", 1, exchanged_at + 10});
  builder.record.metadata[clock_begin_key] = std::to_string(clock_begin);
  fill_ready(builder.record);
  return std::move(builder.record);
}

// Node b computes for 300 and a for 100; the message takes 50 from when both are there. The clock
// of b is 10000 ahead, and its record began 20 later.
Record two_nodes() {
  std::vector<NodeRecord> nodes(2);
  nodes[0] = {node_record(1000, 100, 370), "a", {}, false};
  nodes[1] = {node_record(11020, 300, 350), "b", {0, 10000, 0, 10000, 7}, true};
  return merged(std::move(nodes));
}

TEST(MergedRecords, AreOnTheFirstNodesClockWithNodesByName) {
  const Record record = two_nodes();
  EXPECT_EQ(faults(record), std::vector<std::string>{});
  EXPECT_EQ(lane_names(record)[0], "a · " + record.workers[0].name);
  EXPECT_EQ(record.workers[2].node, "b");
  ASSERT_EQ(record.tasks.size(), 6u);
  EXPECT_EQ(record.tasks[3].start, 20);
  EXPECT_EQ(record.tasks[4].start, 320);
  EXPECT_EQ(record.tasks[4].worker, 3);
  ASSERT_EQ(record.dependencies.size(), 4u);
  EXPECT_EQ(record.dependencies[3].on, record.tasks[4].id);
  EXPECT_EQ(record.marks.size(), 1u);
  EXPECT_EQ(clock_error(record), 7);
}

TEST(MergedRecords, WaitForTheStragglerThenForTheMessage) {
  const Record record = two_nodes();
  const Analysis found = analyse(record, whole_window(record));
  const auto cause = [&](std::size_t worker, Cause which) {
    return found.workers[worker].causes[static_cast<std::size_t>(which)];
  };
  EXPECT_EQ(cause(0, Cause::straggler), 220);
  EXPECT_EQ(cause(0, Cause::exchange), 50);
  EXPECT_EQ(cause(2, Cause::straggler), 0);
  EXPECT_EQ(cause(2, Cause::exchange), 50);
  // Lanes of messages are no workers.
  EXPECT_EQ(found.work, 100 + 10 + 300 + 10);
  EXPECT_EQ(found.workers[1].idle, 0);
  EXPECT_EQ(worker_count(record), 2u);
  // Waiting for a node is no work that cannot be avoided: 300 + 50 + 10 of node b.
  EXPECT_EQ(found.critical, 360);
}

TEST(MergedRecords, TheDoctorNamesTheStraggler) {
  const Record record = two_nodes();
  bool named = false;
  for (const Finding& finding : diagnose(record, analyse(record, whole_window(record)), 10))
    named = named || (finding.what.find("most often 'b'") != std::string::npos &&
                      finding.flag == "--shares speed");
  EXPECT_TRUE(named);
}

TEST(MergedRecords, MoveTogetherIfANodeBeganBeforeTheFirst) {
  std::vector<NodeRecord> nodes(2);
  nodes[0] = {node_record(1000, 100, 370), "a", {}, false};
  nodes[1] = {node_record(900, 300, 350), "b", {}, false};
  const Record record = merged(std::move(nodes));
  EXPECT_EQ(faults(record), std::vector<std::string>{});
  EXPECT_EQ(record.tasks[0].start, 100);
  EXPECT_EQ(record.tasks[3].start, 0);
}

TEST(MergedRecords, AClockThatDriftsIsFollowed) {
  const ClockLine line{.first_at = 0, .first_offset = 100, .last_at = 1000, .last_offset = 200};
  EXPECT_EQ(line.to_first(100), 0);
  EXPECT_EQ(line.to_first(1200), 1000 - 10);  // to the first order of the drift
}

TEST(MergedRecords, JoulesOfAMachineAreCountedOnce) {
  std::vector<NodeRecord> nodes(2);
  for (NodeRecord& node : nodes) {
    node.record = node_record(0, 10, 20);
    node.record.counters = {{"energy cpu", "J", "measured", 1, 5, 3.0},
                            {taken_counter, "share", "measured", 1, 5, 0.5}};
  }
  nodes[1].shares_machine = true;
  EXPECT_EQ(merged(std::move(nodes)).counters.size(), 3u);
}

}  // namespace
}  // namespace regatta::trace
