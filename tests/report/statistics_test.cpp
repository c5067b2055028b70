#include "report/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace regatta {
namespace {

TEST(Statistics, OfAFewNumbersAreTheTextbooks) {
  const std::vector<double> values{4, 1, 3, 2};
  EXPECT_DOUBLE_EQ(mean_of(values), 2.5);
  EXPECT_DOUBLE_EQ(median_of(values), 2.5);
  EXPECT_DOUBLE_EQ(quantile_of(values, 0), 1);
  EXPECT_DOUBLE_EQ(quantile_of(values, 1), 4);
  EXPECT_DOUBLE_EQ(quantile_of(values, 0.25), 1.75);
  EXPECT_NEAR(robust_deviation({1, 2, 3, 4, 1000}), 1.4826, 1e-9);
}

TEST(Statistics, OfNothingAreZero) {
  EXPECT_EQ(mean_of({}), 0);
  EXPECT_EQ(median_of({}), 0);
  EXPECT_EQ(series_interval({}, 1).high, 0);
}

TEST(Statistics, StudentsTableGoesOnSmoothly) {
  EXPECT_NEAR(student_95(2), 4.303, 1e-3);
  EXPECT_NEAR(student_95(16), 2.120, 2e-3);
  EXPECT_NEAR(student_95(30), 2.042, 2e-3);
  EXPECT_NEAR(student_95(1'000'000), 1.960, 1e-3);
  for (std::size_t n = 1; n < 40; ++n) EXPECT_GT(student_95(n), student_95(n + 1));
}

TEST(Statistics, TheIntervalOfAMeanIsStudents) {
  const Interval interval = mean_interval(std::vector<double>{9, 10, 11});
  EXPECT_NEAR(interval.low, 10 - 4.303 / std::sqrt(3), 1e-9);
  EXPECT_NEAR(interval.high, 10 + 4.303 / std::sqrt(3), 1e-9);
}

// 95% of intervals hold the truth; of 200 series, 180 or more is what chance allows.
TEST(Statistics, IntervalsHoldTheTruthAsOftenAsTheySay) {
  int held = 0, held_series = 0;
  for (std::uint64_t run = 0; run < 200; ++run) {
    std::vector<double> values;
    for (std::uint64_t i = 0; i < 40; ++i)
      values.push_back(5 + static_cast<double>(random_normal(7, run, i)));
    const Interval few = mean_interval(std::span(values).first(5));
    const Interval series = series_interval(values, run);
    held += few.low <= 5 && 5 <= few.high;
    held_series += series.low <= 5 && 5 <= series.high;
  }
  EXPECT_GE(held, 180);
  EXPECT_GE(held_series, 175);
}

TEST(Statistics, ASeedFixesTheResampling) {
  const std::vector<double> values{1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_EQ(series_interval(values, 3).low, series_interval(values, 3).low);
}

}  // namespace
}  // namespace regatta
