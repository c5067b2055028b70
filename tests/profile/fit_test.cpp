#include "profile/fit.h"

#include <gtest/gtest.h>

#include "profile/robust.h"

namespace regatta {
namespace {

Point point(double size, int busy, double seconds) { return {size, busy, {{seconds, 0.01, 0.01}}}; }

TEST(Fit, OneSizeIsTakenInProportionUpwards) {
  const Fit fit(std::vector{point(4, 1, 8.0)});
  EXPECT_DOUBLE_EQ(fit.at(4, 1).seconds, 8.0);
  EXPECT_DOUBLE_EQ(fit.at(8, 1).seconds, 16.0);
}

TEST(Fit, MoreWorkNeverTakesLessTime) {
  const Fit fit(std::vector{point(1, 1, 3.0), point(2, 1, 2.0), point(4, 1, 5.0), point(8, 1, 4.5),
                            point(16, 1, 9.0)});
  double before = 0;
  for (double size = 0.5; size < 40; size += 0.25) {
    const double seconds = fit.at(size, 1).seconds;
    EXPECT_GE(seconds, before) << size;
    before = seconds;
  }
}

TEST(Fit, BeyondWhatWasMeasuredItStaysSaneAndIsLessSure) {
  // The last two sizes alone would say that samples are free.
  const Fit fit(std::vector{point(1, 1, 1.0), point(8, 1, 8.0), point(9, 1, 8.0)});
  const Estimate far = fit.at(90, 1);
  EXPECT_GT(far.seconds, 40.0);
  EXPECT_LT(far.seconds, 160.0);
  const Estimate near = fit.at(9, 1);
  EXPECT_GT(far.high / far.low, near.high / near.low);
  EXPECT_TRUE(fit.reaches(18));
  EXPECT_FALSE(fit.reaches(90));
}

// Buckets of a coarse plan; those of a fine one are a hundredth of that.
TEST(Fit, SizesThatAreNearlyAlikeDoNotTellWhatMuchSmallerOnesCost) {
  const Fit fit(std::vector{point(4.2e6, 1, 0.666e-3), point(4.69e6, 1, 0.678e-3),
                            point(5.13e6, 1, 0.786e-3)});
  EXPECT_NEAR(fit.at(61504, 1).seconds, 9.75e-6, 1e-6);
}

TEST(Fit, BetweenAloneAndAllBusyTheSlowdownGrowsEvenly) {
  const Fit fit(
      std::vector{point(1, 1, 1.0), point(2, 1, 2.0), point(1, 5, 2.0), point(2, 5, 4.0)});
  EXPECT_DOUBLE_EQ(fit.at(1, 3).seconds, 1.5);
  EXPECT_DOUBLE_EQ(fit.at(2, 5).seconds, 4.0);
}

TEST(Fit, WhereOneCurveEndsItFollowsTheOther) {
  // All busy was measured up to 2 samples, one worker alone up to 16.
  const Fit fit(std::vector{point(1, 1, 1.0), point(2, 1, 2.0), point(16, 1, 10.0),
                            point(1, 4, 2.0), point(2, 4, 4.0)});
  EXPECT_DOUBLE_EQ(fit.at(16, 4).seconds, 20.0);
}

TEST(Fit, MoreBusyWorkersThanWereEverSeenMakeItLessSure) {
  const Fit fit(std::vector{point(1, 1, 1.0), point(2, 1, 2.0)});
  EXPECT_DOUBLE_EQ(fit.at(2, 8).seconds, 2.0);
  EXPECT_GT(fit.at(2, 8).high, fit.at(2, 1).high);
}

// The error says that the point rests on one timing.
Point timed_once(double size, int busy, double seconds) {
  return {size, busy, {{seconds, error_of_one_timing, 0}}};
}

// Reading samples took 0.1 ms each, and once, on a busy machine, 10 ms.
TEST(Fit, ASingleTimingThatItsNeighboursContradictCountsForNothing) {
  const std::vector<Point> sure{point(4, 1, 0.4e-3), point(16, 1, 1.6e-3), point(4, 2, 0.4e-3),
                                point(16, 2, 1.6e-3)};
  for (const int busy : {1, 2})
    for (const double size : {1.0, 4.0, 8.0, 32.0}) {
      std::vector<Point> all = sure;
      std::erase_if(all, [&](const Point& each) { return each.size == size && each.busy == busy; });
      const Fit without(all);
      all.push_back(timed_once(size, busy, 50e-3));
      const Fit fit(all);
      for (const double asked : {1.0, 4.0, 8.0, 32.0})
        EXPECT_DOUBLE_EQ(fit.at(asked, busy).seconds, without.at(asked, busy).seconds)
            << size << " " << busy << " " << asked;
    }
  // Where all were timed once, the fast ones are believed: whatever disturbs only adds time.
  const Fit fit(std::vector{timed_once(4, 1, 0.4e-3), timed_once(8, 1, 50e-3)});
  EXPECT_DOUBLE_EQ(fit.at(8, 1).seconds, 0.8e-3);
}

TEST(Fit, ASingleTimingCountsWhereNothingContradictsIt) {
  EXPECT_DOUBLE_EQ(Fit(std::vector{timed_once(8, 1, 10e-3)}).at(8, 1).seconds, 10e-3);
  // Opening a file takes as long for one sample as for many.
  const std::vector<Point> opened{timed_once(1, 1, 1e-3), point(64, 1, 1.1e-3)};
  EXPECT_DOUBLE_EQ(Fit(opened).at(1, 1).seconds, 1e-3);
  // Beyond the caches a sample may cost more.
  const std::vector<Point> larger{point(4, 1, 4.0), timed_once(64, 1, 160.0)};
  EXPECT_DOUBLE_EQ(Fit(larger).at(64, 1).seconds, 160.0);
}

TEST(Fit, ASlowTimingThatCameTwiceCounts) {
  const std::vector<Point> points{point(4, 1, 0.4e-3),
                                  Point{8, 1, {{50e-3, 0.25, 0}, {50e-3, 0.25, 0}}}};
  EXPECT_DOUBLE_EQ(Fit(points).at(8, 1).seconds, 50e-3);
}

TEST(Fit, OfNothingIsEmpty) {
  EXPECT_TRUE(Fit(std::vector<Point>{}).empty());
  EXPECT_TRUE(Fit(std::vector{Point{1, 1, {}}}).empty());
}

}  // namespace
}  // namespace regatta
