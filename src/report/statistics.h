// report/: numbers and pages for people: statistics of measured runs, tables, charts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace regatta {

struct Interval {
  double low = 0, high = 0;
};

double mean_of(std::span<const double> values);
// Of nothing: 0.
double quantile_of(std::vector<double> values, double share);
double median_of(std::vector<double> values);
// The median distance from the median, scaled to a normal distribution's deviation.
double robust_deviation(const std::vector<double>& values);

// The two-sided 95% point of Student's t.
double student_95(std::size_t degrees_of_freedom);

// 95% interval of the mean of independent values; of one value: the value itself.
Interval mean_interval(std::span<const double> values);

// 95% interval of the mean of a series whose neighbours depend on each other: resampled in blocks,
// by a random order that `seed` fixes.
Interval series_interval(std::span<const double> series, std::uint64_t seed);

}  // namespace regatta
