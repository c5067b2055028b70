#include "train/speed.h"

#include <gtest/gtest.h>

namespace regatta {
namespace {

void add(SpeedMeter& meter, int steps, double seconds, std::int64_t images = 64) {
  for (int i = 0; i < steps; ++i) meter.add(Seconds(seconds), images);
}

TEST(Speed, OfEqualStepsIsTheirRate) {
  for (const int steps : {1, 2, 19, 20, 50}) {
    SpeedMeter meter;
    add(meter, steps, 0.5);
    EXPECT_DOUBLE_EQ(meter.speed().images_per_s, 128) << steps;
    EXPECT_DOUBLE_EQ(meter.speed().typical_step_s, 0.5) << steps;
  }
}

// A quarter of the time is spent in one step of a thousand: the median would be a third too good.
TEST(Speed, CountsEveryStall) {
  SpeedMeter meter;
  double seconds = 0;
  add(meter, 10, 0.001);
  for (int i = 0; i < 100'000; ++i) {
    const double step = i % 1000 == 999 ? 0.334 : 0.001;
    meter.add(Seconds(step), 10);
    seconds += step;
  }
  EXPECT_NEAR(meter.speed().images_per_s, 1e6 / seconds, 1e-6 * 1e6 / seconds);
  EXPECT_LT(meter.speed().images_per_s, 0.8 * 10 / 0.001);
}

TEST(Speed, LeavesTheWarmUpOut) {
  SpeedMeter meter;
  add(meter, 10, 4.0);
  add(meter, 10, 0.5);
  EXPECT_DOUBLE_EQ(meter.speed().images_per_s, 128);
  SpeedMeter half;  // too short for ten steps of it
  add(half, 4, 4.0);
  add(half, 4, 0.5);
  EXPECT_DOUBLE_EQ(half.speed().images_per_s, 128);
}

TEST(Speed, OfNothingIsZero) {
  EXPECT_EQ(SpeedMeter{}.speed().images_per_s, 0);
  EXPECT_EQ(SpeedMeter{}.speed().typical_step_s, 0);
  EXPECT_EQ(typical_seconds({}), 0);
  SpeedMeter timeless;
  add(timeless, 5, 0);
  EXPECT_EQ(timeless.speed().images_per_s, 0);
}

TEST(TypicalStep, IsTheMiddleOfStretchesNotOfSteps) {
  std::vector<double> seconds(100, 1);
  for (std::size_t i = 0; i < 40; ++i) seconds[i] = 9;  // a disturbance
  seconds[50] = 1000;                                   // and another
  EXPECT_NEAR(typical_seconds(seconds), 5, 4);
  for (std::size_t i = 0; i < 35; ++i) seconds[i] = 1;
  EXPECT_DOUBLE_EQ(typical_seconds(seconds), 1);
  // Two in flight that end together.
  for (std::size_t i = 0; i < 100; ++i) seconds[i] = i % 2 == 0 ? 3 : 1;
  EXPECT_DOUBLE_EQ(typical_seconds(seconds), 2);
}

TEST(TypicalStep, OfAMillionStepsNeedsNoMoreMemoryThanOfTwenty) {
  TypicalStep typical;
  for (int i = 0; i < 1'000'000; ++i) typical.add(i % 2 == 0 ? 3 : 1);
  EXPECT_DOUBLE_EQ(typical.seconds(), 2);
  static_assert(sizeof(SpeedMeter) < 256);
}

}  // namespace
}  // namespace regatta
