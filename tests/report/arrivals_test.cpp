#include "report/arrivals.h"

#include <gtest/gtest.h>

#include "report/compare.h"
#include "trace/toy_run.h"

namespace regatta {
namespace {

// Two nodes and two steps: each node's forward, then its part of an exchange of bucket 0. The
// second node arrives `late` ns after the first; from then on messages take 300 ns.
trace::Record two_nodes(trace::Time late) {
  trace::RecordBuilder builder(4);
  for (int worker = 0; worker < 4; ++worker) {
    trace::Worker& made = builder.record.workers[static_cast<std::size_t>(worker)];
    made.node = worker < 2 ? "a" : "b";
    if (worker % 2 == 1) made.kind = trace::network_kind;
  }
  for (std::int64_t step = 1; step <= 2; ++step) {
    const trace::Time begin = (step - 1) * 10000 + 500, met = begin + 1000 + late + 300;
    const auto a = builder.task(0, step, "forward", begin, begin + 1000);
    const auto b = builder.task(2, step, "forward", begin + 100, begin + 1000 + late);
    builder.task(1, step, "exchange", begin + 1000, met, {a});
    builder.task(3, step, "exchange", begin + 1000 + late, met, {b});
    builder.record.marks.push_back({"step", step, met});
  }
  for (trace::TaskKind& kind : builder.record.kinds)
    if (kind.phases == "exchange") kind.bucket = 0;
  builder.record.metadata[trace::first_step_key] = "1";
  builder.record.metadata[trace::last_step_key] = "2";
  return builder.record;
}

TEST(RankMeetings, TellWhenEachNodeCameAndHowLongMessagesTookFromTheLastOn) {
  const trace::Record record = two_nodes(700);
  const auto met = rank_meetings(record, trace::whole_window(record));
  ASSERT_TRUE(met);
  const RankMeeting* bucket = met->find("exchange b0");
  ASSERT_NE(bucket, nullptr);
  EXPECT_TRUE(bucket->gradients);
  EXPECT_NEAR(bucket->arrivals.at("a"), 1000e-9, 1e-12);
  EXPECT_NEAR(bucket->arrivals.at("b"), 1700e-9, 1e-12);
  EXPECT_NEAR(bucket->messages, 300e-9, 1e-12);
  EXPECT_NEAR(met->exchange_s, 300e-9, 1e-12);
}

TEST(RankMeetings, AreNotInARecordOfOneNode) {
  const trace::Record record = trace::toy_run({});
  EXPECT_FALSE(rank_meetings(record, trace::whole_window(record)));
}

TEST(RankMeetings, AreLaidSideBySideByRank) {
  Planned planned;
  planned.meetings =
      RankMeetings{{{"exchange b0", true, {{"a", 900e-9}, {"b", 950e-9}}, 200e-9}}, 200e-9};
  planned.message_bounds["exchange b0"] = 150e-9;
  planned.exchange_bound = 150e-9;
  const Comparison made = compare(two_nodes(700), two_nodes(100), planned);
  const CompareRow* late = made.find("arrival exchange b0, b");
  ASSERT_NE(late, nullptr);
  EXPECT_NEAR(*late->planned, 950e-9, 1e-12);
  EXPECT_NEAR(*late->simulated, 1100e-9, 1e-12);
  EXPECT_NEAR(*late->measured, 1700e-9, 1e-12);
  const CompareRow* messages = made.find("messages exchange b0");
  ASSERT_NE(messages, nullptr);
  EXPECT_EQ(messages->bound, planned.exchange_bound);
  EXPECT_NEAR(*messages->planned, 200e-9, 1e-12);
  EXPECT_NEAR(*made.find("exchange_s")->measured, 300e-9, 1e-12);
  // The lanes of messages do not count as workers.
  EXPECT_NE(made.find("busy a · cpu 0"), nullptr);
  EXPECT_EQ(made.find("busy a · cpu 1"), nullptr);
  EXPECT_NE(table_of(made).find("arrival exchange b0, a"), std::string::npos);
}

}  // namespace
}  // namespace regatta
