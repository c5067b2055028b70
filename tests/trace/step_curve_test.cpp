#include "trace/step_curve.h"

#include <gtest/gtest.h>

#include <numeric>

namespace regatta::trace {
namespace {

StepStretch step(std::int64_t number, double loss, double rate = 100) {
  return {.step = number, .loss = loss, .loss_min = loss, .loss_max = loss, .images_per_s = rate};
}

TEST(StepStretch, OfSeveralStepsHasTheirMeanTheirExtremesAndTheirCommonSpeed) {
  StepStretch stretch = step(7, 1, 100);
  stretch.add(step(8, 4, 50));
  stretch.add(step(9, 1, 100));
  EXPECT_EQ(stretch.step, 9);
  EXPECT_EQ(stretch.steps, 3);
  EXPECT_DOUBLE_EQ(stretch.loss, 2);
  EXPECT_EQ(stretch.loss_min, 1);
  EXPECT_EQ(stretch.loss_max, 4);
  // As many images in 1, 2 and 1 units of time.
  EXPECT_DOUBLE_EQ(stretch.images_per_s, 75);
}

TEST(StepStretch, ComesBackFromItsLineOfMetrics) {
  StepStretch stretch = step(8, 4, 50);
  EXPECT_FALSE(to_json(stretch).contains("steps"));
  EXPECT_EQ(stretch_of(to_json(stretch))->loss_max, 4);
  stretch.add(step(9, 1));
  const StepStretch again = stretch_of(to_json(stretch)).value();
  EXPECT_EQ(again.steps, 2);
  EXPECT_EQ(again.loss_min, 1);
  EXPECT_EQ(again.loss_max, 4);
  EXPECT_FALSE(stretch_of({{"epoch", 1}, {"train_loss", 2.0}}));
  EXPECT_FALSE(stretch_of({{"step", 1}, {"loss", nullptr}, {"images_per_s", 1.0}}));
}

TEST(StepsALine, DoubleWithTheLengthOfTheRun) {
  EXPECT_EQ(steps_a_line(1), 1);
  EXPECT_EQ(steps_a_line(20'000), 1);
  EXPECT_EQ(steps_a_line(20'001), 2);
  EXPECT_EQ(steps_a_line(40'000), 2);
  EXPECT_EQ(steps_a_line(40'001), 4);
  EXPECT_EQ(steps_a_line(10'000'000), 512);
  std::int64_t lines = 0;
  for (std::int64_t s = 1; s <= 10'000'000; ++s) lines += s % steps_a_line(s) == 0;
  EXPECT_LE(lines, 110'000);
}

TEST(StepCurve, KeepsEveryStepWhileThereAreFew) {
  StepCurve curve(8);
  for (std::int64_t s = 1; s <= 8; ++s) curve.add(step(s, 1.0 / static_cast<double>(s)));
  ASSERT_EQ(curve.points().size(), 8u);
  for (const StepStretch& point : curve.points()) EXPECT_EQ(point.steps, 1);
}

TEST(StepCurve, OfMillionsOfStepsHasFewPointsAndEverySpike) {
  StepCurve curve(1000);
  constexpr std::int64_t all = 3'000'000, spike = 1'234'567;
  for (std::int64_t s = 1; s <= all; ++s) curve.add(step(s, s == spike ? 99 : 1));
  const std::vector<StepStretch>& points = curve.points();
  EXPECT_LE(points.size(), 1000u);
  EXPECT_GE(points.size(), 500u);
  std::int64_t told = 0;
  int spikes = 0;
  for (const StepStretch& point : points) {
    told += point.steps;
    EXPECT_EQ(point.step, told);  // no step is missing or told of twice
    EXPECT_EQ(point.loss_min, 1);
    if (point.loss_max != 99) continue;
    ++spikes;
    EXPECT_GE(point.step, spike);
    EXPECT_LT(point.step - point.steps, spike);
  }
  EXPECT_EQ(told, all);
  EXPECT_EQ(spikes, 1);
}

}  // namespace
}  // namespace regatta::trace
