// When shares are planned anew.
#include "plan/share_watch.h"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>

namespace regatta {
namespace {

using Sizes = std::vector<std::int64_t>;
using Times = std::vector<double>;

// How many steps with these times it takes until other shares are worth it; -1: more than 500.
int steps_until(ShareWatch& watch, const std::function<Times(int)>& times) {
  for (int step = 1; step <= 500; ++step)
    if (watch.note(times(step))) return step;
  return -1;
}
int steps_until(ShareWatch& watch, const Times& times) {
  return steps_until(watch, [&](int) { return times; });
}

TEST(ShareWatch, SharesFollowARankThatBecameSlowerForAWhile) {
  ShareWatch watch({16, 16}, 1);
  EXPECT_FALSE(watch.note(Times{1.0, 1.0}));
  EXPECT_EQ(steps_until(watch, Times{1.0, 3.0}), watch.patience());
  EXPECT_EQ(watch.better(), (Sizes{24, 8}));
}

TEST(ShareWatch, SharesFollowARankThatBecameFaster) {
  ShareWatch watch({24, 8}, 1);
  EXPECT_EQ(steps_until(watch, Times{1.5, 0.5}), watch.patience());
  EXPECT_EQ(watch.better(), (Sizes{16, 16}));
}

TEST(ShareWatch, APassingDisturbanceChangesNothing) {
  ShareWatch watch({16, 16}, 1);
  EXPECT_EQ(steps_until(watch,
                        [](int step) {
                          return step % 15 == 0 ? Times{1.0, 1.0} : Times{1.0, 3.0};
                        }),
            -1);
}

TEST(ShareWatch, LessThanATenthIsNotWorthIt) {
  ShareWatch watch({50, 50}, 1);
  EXPECT_EQ(steps_until(watch, Times{1.0, 1.15}), -1);
  // Whole chunks cannot follow so little.
  ShareWatch chunks({16, 16}, 1, Sizes(4, 8));
  EXPECT_EQ(steps_until(chunks, Times{1.0, 1.4}), -1);
}

TEST(ShareWatch, DeterministicSharesStayWholeChunks) {
  ShareWatch watch({16, 16}, 1, Sizes(8, 4));
  EXPECT_GT(steps_until(watch, Times{1.0, 3.0}), 0);
  EXPECT_EQ(watch.better(), (Sizes{24, 8}));
}

TEST(ShareWatch, StepsOfWhichARankTellsNothingDoNotCount) {
  ShareWatch watch({16, 16}, 1);
  EXPECT_EQ(steps_until(watch,
                        [](int step) {
                          return step % 2 == 0 ? Times{0, 3.0} : Times{1.0, 3.0};
                        }),
            2 * watch.patience() - 1);
}

TEST(ShareWatch, EveryChangeMakesTheNextOneRarer) {
  ShareWatch watch({16, 16}, 1);
  const int first = watch.patience();
  EXPECT_EQ(steps_until(watch, Times{1.0, 3.0}), first);
  watch.use(watch.better());
  EXPECT_EQ(watch.shares(), (Sizes{24, 8}));
  EXPECT_EQ(steps_until(watch, Times{1.5, 0.5}), 2 * first);
}

TEST(ShareWatch, SharesSettleWhereTimesAreNotProportionalToThem) {
  // The second rank takes 1 s for each step whatever its share: giving samples away does not help
  // as much as its time promised.
  const auto took = [](const Sizes& shares) {
    return Times{0.05 * static_cast<double>(shares[0]), 1 + 0.05 * static_cast<double>(shares[1])};
  };
  ShareWatch watch({16, 16}, 1);
  for (int changes = 0; changes < 4; ++changes) {
    if (steps_until(watch, [&](int) { return took(watch.shares()); }) < 0) break;
    watch.use(watch.better());
  }
  const Times last = took(watch.shares());
  EXPECT_NEAR(last[0], last[1], 0.15);
  EXPECT_EQ(steps_until(watch, last), -1);
}

}  // namespace
}  // namespace regatta
