#include "report/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/random.h"

namespace regatta {

double mean_of(std::span<const double> values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double quantile_of(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const double at = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  const double weight = at - static_cast<double>(below);
  return values[below] * (1 - weight) + values[above] * weight;
}

double median_of(std::vector<double> values) { return quantile_of(std::move(values), 0.5); }

double robust_deviation(const std::vector<double>& values) {
  constexpr double to_deviation = 1.4826;
  const double middle = median_of(values);
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) distances.push_back(std::abs(value - middle));
  return to_deviation * median_of(std::move(distances));
}

double student_95(std::size_t degrees_of_freedom) {
  constexpr std::array table{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                             2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131};
  if (degrees_of_freedom == 0) return 0;
  if (degrees_of_freedom <= table.size()) return table[degrees_of_freedom - 1];
  // Cornish and Fisher's expansion about the normal's 1.96: right to three digits from here on.
  constexpr double z = 1.959964;
  const auto n = static_cast<double>(degrees_of_freedom);
  return z + (z * z * z + z) / (4 * n) +
         (5 * z * z * z * z * z + 16 * z * z * z + 3 * z) / (96 * n * n);
}

Interval mean_interval(std::span<const double> values) {
  const double mean = mean_of(values);
  if (values.size() < 2) return {mean, mean};
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const auto count = static_cast<double>(values.size());
  const double half = student_95(values.size() - 1) * std::sqrt(squares / (count - 1) / count);
  return {mean - half, mean + half};
}

Interval series_interval(std::span<const double> series, std::uint64_t seed) {
  constexpr std::uint64_t draws = 1000;
  if (series.size() < 2) return {mean_of(series), mean_of(series)};
  // Blocks of the cube root of the length are the usual choice.
  const auto block = static_cast<std::size_t>(std::cbrt(static_cast<double>(series.size())));
  const std::size_t starts = series.size() - block + 1;
  const std::size_t blocks = (series.size() + block - 1) / block;
  // A block's sum is looked up, so that a draw costs its blocks and not its values.
  std::vector<double> sums(series.size() + 1, 0.0);
  std::partial_sum(series.begin(), series.end(), sums.begin() + 1);
  std::vector<double> means;
  means.reserve(draws);
  for (std::uint64_t draw = 0; draw < draws; ++draw) {
    double total = 0;
    for (std::size_t b = 0; b < blocks; ++b) {
      const std::size_t start = random_bits(seed, draw, b) % starts;
      total += sums[start + block] - sums[start];
    }
    means.push_back(total / static_cast<double>(blocks * block));
  }
  return {quantile_of(means, 0.025), quantile_of(means, 0.975)};
}

}  // namespace regatta
