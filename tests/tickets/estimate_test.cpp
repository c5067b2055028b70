// How long a search takes, before it begins.
#include "tickets/estimate.h"

#include <gtest/gtest.h>

#include <utility>

#include "base/error.h"

namespace regatta::tickets {
namespace {

constexpr double hour = 3600;

// 20 masks at 5 reset points, 350 epochs of 4.5 minutes each.
const SearchSize weekend{.masks = 20, .resets = 5, .epochs = 350, .epoch_time = Seconds(270)};

TEST(Estimate, TwentyEqualWorkersAreTwentyTimesAsFast) {
  const SearchEstimate found = estimate(jobs_of(weekend), parse_speeds("--workers", "20"));
  EXPECT_EQ(time_text(found.alone), "2625 h");
  EXPECT_EQ(time_text(found.together), "131 h 15 min");
  EXPECT_DOUBLE_EQ(found.speed_up(), 20);
  EXPECT_DOUBLE_EQ(found.efficiency(), 1);
}

TEST(Estimate, OneWorkerOfHalfTheSpeedCostsMoreThanItsShareBecauseJobsAreWhole) {
  const SearchEstimate found = estimate(jobs_of(weekend), parse_speeds("--workers", "19x1,0.5"));
  EXPECT_EQ(time_text(found.together), "157 h 30 min");
  EXPECT_EQ(time_text(found.ideal), "134 h 37 min");
}

TEST(Estimate, LevelsWaitForEachOther) {
  SearchSize size = weekend;
  size.levels = std::exchange(size.masks, 0);
  const SearchEstimate found = estimate(jobs_of(size), parse_speeds("--workers", "20"));
  EXPECT_DOUBLE_EQ(found.together.count(), 20 * 350 * 270.0);  // five chains, whatever is there
  EXPECT_DOUBLE_EQ(found.longest_chain.count(), found.together.count());
}

TEST(Estimate, SpeedsAreNumbersWithCounts) {
  EXPECT_EQ(parse_speeds("--workers", "3").size(), 3u);
  const auto mixed = parse_speeds("--workers", "2x1,0.5,1x4");
  ASSERT_EQ(mixed.size(), 4u);
  EXPECT_EQ(mixed[2].speed, 0.5);
  EXPECT_EQ(mixed[3].speed, 4);
  for (const char* wrong : {"", "0", "x", "2x", "-1", "1x0", "1.5x1", "2,,1", "1xnan", "1000000"})
    EXPECT_THROW(parse_speeds("--workers", wrong), InputError) << wrong;
}

TEST(Estimate, TimesHaveUnits) {
  EXPECT_DOUBLE_EQ(parse_time("--epoch-time", "4.5m").count(), 270);
  EXPECT_DOUBLE_EQ(parse_time("--epoch-time", "2h").count(), 2 * hour);
  for (const char* wrong : {"", "4.5", "m", "-1s", "1d", "nans"})
    EXPECT_THROW(parse_time("--epoch-time", wrong), InputError) << wrong;
}

TEST(Estimate, TimesReadAsPeopleSayThem) {
  EXPECT_EQ(time_text(Seconds(270)), "4 min 30 s");
  EXPECT_EQ(time_text(Seconds(120)), "2 min");
  EXPECT_EQ(time_text(Seconds(12.34)), "12.3 s");
  EXPECT_EQ(time_text(Seconds(3599.9)), "60 min");
}

}  // namespace
}  // namespace regatta::tickets
