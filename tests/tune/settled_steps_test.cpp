#include "tune/settled_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace regatta {
namespace {

using testing::Each;
using testing::SizeIs;

void take(SettledSteps& steps, int count, double seconds) {
  for (int i = 0; i < count; ++i) steps.on_step({.duration = Seconds(seconds)});
}

TEST(SettledSteps, ShortOnesAreLeftOutForAWhile) {
  constexpr double step = 1.0 / 1024;
  const int settling = static_cast<int>(std::ceil(SettledSteps::settling_time.count() / step));
  SettledSteps steps(Seconds(64 * step), 2, 2);
  take(steps, 1, 2);  // kernels are made
  take(steps, settling - 1, step);
  EXPECT_FALSE(steps.settled());
  take(steps, 1, step);
  EXPECT_TRUE(steps.settled());
  EXPECT_THAT(steps.seconds(), SizeIs(0));
  take(steps, 63, step);
  EXPECT_FALSE(steps.stop());
  take(steps, 1, step);
  EXPECT_TRUE(steps.stop());
  EXPECT_THAT(steps.seconds(), SizeIs(64));
  EXPECT_THAT(steps.seconds(), Each(step));
  EXPECT_DOUBLE_EQ(steps.run_seconds(), 2 + (settling + 64) * step);
}

TEST(SettledSteps, OfLongOnesAFewDo) {
  SettledSteps steps(Seconds(0.1), 2, 2);
  take(steps, 2, 1);
  EXPECT_FALSE(steps.stop());
  take(steps, 1, 0.5);
  EXPECT_FALSE(steps.stop());
  take(steps, 1, 0.5);
  EXPECT_TRUE(steps.stop());
  EXPECT_THAT(steps.seconds(), SizeIs(2));
}

}  // namespace
}  // namespace regatta
