// report/: numbers and pages for people: statistics of measured runs, tables, charts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace regatta {

struct Interval {
  double low = 0, high = 0;
};

double mean_of(std::span<const double> values);
std::optional<double> mean_if_any(std::span<const double> values);
// 0 if there are no values.
double quantile_of(std::vector<double> values, double share);
double median_of(std::vector<double> values);
// The median distance from the median, scaled to a normal distribution's deviation.
double robust_deviation(const std::vector<double>& values);

// Interval of the median of independent values, whatever their distribution: between two of the
// values, so far apart that it holds the true median 95% of the time. With fewer than six values
// that is the range of all of them, which holds it less often: 94% with five, 75% with three.
Interval median_interval(std::vector<double> values);

// 95% interval of the mean of a series whose neighbours depend on each other: resampled in blocks,
// by a random order that `seed` fixes.
Interval series_interval(std::span<const double> series, std::uint64_t seed);

}  // namespace regatta
