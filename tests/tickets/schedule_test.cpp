// Whole jobs on unequal workers.
#include "tickets/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace regatta::tickets {
namespace {

std::vector<JobWork> alike(std::size_t count, double work) {
  return std::vector<JobWork>(count, JobWork{work, {}});
}

TEST(TicketSchedule, EqualWorkersShareEqualJobs) {
  const auto placed = schedule(alike(100, 3), std::vector<WorkerSpeed>(20));
  EXPECT_DOUBLE_EQ(end_of(placed).count(), 15);
  std::vector<int> done(20);
  for (const PlacedJob& each : placed) ++done[each.worker];
  EXPECT_EQ(done, std::vector<int>(20, 5));
}

TEST(TicketSchedule, ASlowWorkerGetsFewerJobs) {
  const auto placed = schedule(alike(6, 1), {{1, {}}, {0.5, {}}});
  std::vector<int> done(2);
  for (const PlacedJob& each : placed) ++done[each.worker];
  EXPECT_EQ(done, (std::vector<int>{4, 2}));
  EXPECT_DOUBLE_EQ(end_of(placed).count(), 4);
}

TEST(TicketSchedule, LongJobsGoFirstAndToFastWorkers) {
  const auto placed = schedule({{1, {}}, {8, {}}, {1, {}}}, {{1, {}}, {4, {}}});
  ASSERT_EQ(placed.front().job, 1u);
  EXPECT_EQ(placed.front().worker, 1u);
  EXPECT_DOUBLE_EQ(end_of(placed).count(), 2);
}

TEST(TicketSchedule, JobsWaitForThoseBeforeThem) {
  const std::vector<JobWork> chain{{2, {}}, {2, {0}}, {2, {1}}, {1, {}}};
  const auto placed = schedule(chain, std::vector<WorkerSpeed>(3));
  EXPECT_DOUBLE_EQ(end_of(placed).count(), 6);
  std::vector<double> start(4), end(4);
  for (const PlacedJob& each : placed) {
    start[each.job] = each.start.count();
    end[each.job] = each.end.count();
  }
  EXPECT_GE(start[1], end[0]);
  EXPECT_GE(start[2], end[1]);
}

TEST(TicketSchedule, NoScheduleBeatsTheHeterogeneousIdealOrTheLongestChain) {
  const std::vector<JobWork> jobs{{3, {}}, {5, {0}}, {2, {0}}, {7, {}}, {1, {2}}};
  const std::vector<WorkerSpeed> workers{{1, {}}, {2.5, {}}, {0.3, {}}};
  const Seconds end = end_of(schedule(jobs, workers));
  EXPECT_GE(end, ideal_time(jobs, workers));
  EXPECT_GE(end.count(), std::ranges::max(longest_chains(jobs)) / 2.5);
}

TEST(TicketSchedule, JobsInACircleAreRefused) {
  EXPECT_THROW(schedule({{1, {1}}, {1, {0}}}, std::vector<WorkerSpeed>(1)), std::exception);
}

TEST(NextJob, AFreeWorkerTakesTheJobWithTheLongestChain) {
  const std::vector<OpenJob> jobs{{{1, {}}, {}}, {{1, {}}, {}}, {{5, {1}}, {}}};
  EXPECT_EQ(next_job(jobs, {{1, {}}}, 0), 1u);
}

TEST(NextJob, ASlowWorkerLeavesTheLastJobToAFastOneThatIsSoonFree) {
  const std::vector<OpenJob> jobs{{{10, {}}, {}}};
  EXPECT_EQ(next_job(jobs, {{1, {}}, {10, Seconds{2}}}, 0), std::nullopt);
  EXPECT_EQ(next_job(jobs, {{1, {}}, {10, Seconds{50}}}, 0), 0u);
}

TEST(NextJob, JobsWhosePredecessorsAreUnderWayAreNotBegun) {
  const std::vector<OpenJob> jobs{{{10, {}}, Seconds{3}}};
  EXPECT_EQ(next_job(jobs, {{1, {}}}, 0), std::nullopt);
}

}  // namespace
}  // namespace regatta::tickets
