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

TEST(Statistics, TheIntervalOfAMedianLiesBetweenTwoOfTheValues) {
  EXPECT_EQ(median_interval({}).high, 0);
  EXPECT_EQ(median_interval({7}).low, 7);
  // Up to five values cannot leave out any.
  EXPECT_EQ(median_interval({3, 1, 2}).low, 1);
  EXPECT_EQ(median_interval({3, 1, 2}).high, 3);
  // The textbook's interval of ten values is the second to the ninth: 97.9%.
  const Interval ten = median_interval({10, 9, 8, 7, 6, 5, 4, 3, 2, 1});
  EXPECT_EQ(ten.low, 2);
  EXPECT_EQ(ten.high, 9);
}

// 95% of intervals hold the truth; of 200 series, 180 or more is what chance allows.
TEST(Statistics, IntervalsHoldTheTruthAsOftenAsTheySay) {
  int held = 0, held_series = 0;
  for (std::uint64_t run = 0; run < 200; ++run) {
    std::vector<double> values;
    for (std::uint64_t i = 0; i < 40; ++i)
      values.push_back(5 + static_cast<double>(random_normal(7, run, i)));
    const Interval few = median_interval({values.begin(), values.begin() + 9});
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
