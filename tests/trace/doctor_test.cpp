#include "trace/doctor.h"

#include <gtest/gtest.h>

namespace regatta::trace {
namespace {

// A GPU computes nine tenths of the time, and a CPU worker that loads for it a tenth.
Record fed_gpu() {
  Record record;
  record.workers = {{"cuda 0", "cuda", "here", "cuda"}, {"cpu 0", "host", "here", "cpu"}};
  record.kinds = {{.job = "train", .phases = "load", .group = "host"},
                  {.job = "train", .phases = "forward+backward+update", .group = "cuda"}};
  for (std::int64_t step = 0; step < 10; ++step) {
    const Time begin = step * 100;
    record.tasks.push_back({.id = 2 * step,
                            .kind = 0,
                            .worker = 1,
                            .step = step + 1,
                            .submit = 0,
                            .ready = begin,
                            .start = begin,
                            .end = begin + 10});
    record.tasks.push_back({.id = 2 * step + 1,
                            .kind = 1,
                            .worker = 0,
                            .step = step + 1,
                            .submit = 0,
                            .ready = begin + 10,
                            .start = begin + 10,
                            .end = begin + 100});
    record.dependencies.push_back({2 * step + 1, 2 * step});
  }
  return record;
}

TEST(Doctor, DoesNotMindThatWorkersThatFeedAGpuSleep) {
  const Record record = fed_gpu();
  ASSERT_TRUE(faults(record).empty());
  const std::vector<Finding> found = diagnose(record, analyse(record, whole_window(record)));
  ASSERT_FALSE(found.empty());
  EXPECT_NE(found.front().what.find("waited for samples"), std::string::npos) << found.front().what;
  EXPECT_NEAR(found.front().gain, 0.1, 1e-9);
  for (const Finding& each : found) EXPECT_LE(each.gain, 0.1 + 1e-9) << each.what;
}

// Shares do not shorten the way between nodes.
TEST(Doctor, AdvisesAnotherUpdateWhereGradientsTravelBetweenNodes) {
  Record record = fed_gpu();
  record.workers = {{"cpu 0", "cpu", "north", "cpu"}, {"cpu 0", "cpu", "south", "cpu"}};
  record.links = {{"ranks", "ranks", 1000, 10}};
  for (Task& task : record.tasks)
    if (task.kind == 1) {
      task.acquire = 5;
      task.start += task.acquire;
    }
  const auto flag_of_transfers = [](const Record& each) {
    for (const Finding& found : diagnose(each, analyse(each, whole_window(each)), 10))
      if (found.what.find("on their way between nodes") != std::string::npos ||
          found.what.find("on its way between memories") != std::string::npos)
        return found.flag;
    return std::string();
  };
  EXPECT_EQ(flag_of_transfers(record), "--update hierarchical");
  record.workers[1].node = "north";
  EXPECT_EQ(flag_of_transfers(record), "--shares");
}

TEST(Analysis, TakesTheMeanOfWhatOthersTookInItsSteps) {
  Record record = fed_gpu();
  EXPECT_FALSE(analyse(record, whole_window(record)).taken_by_others);
  for (std::int64_t step = 1; step <= 10; ++step) {
    record.marks.push_back({"step", step, 100 * step});
    record.counters.push_back(
        {taken_counter, "share", "measured", step, 100 * step, step <= 5 ? 0.1 : 0.3});
    record.counters.push_back({"energy cpu", "J", "measured", step, 100 * step, 7});
  }
  EXPECT_NEAR(*analyse(record, window_of_steps(record, 5, 6)).taken_by_others, 0.2, 1e-9);
}

}  // namespace
}  // namespace regatta::trace
