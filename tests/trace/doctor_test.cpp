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

}  // namespace
}  // namespace regatta::trace
