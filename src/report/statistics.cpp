#include "report/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.h"

namespace regatta {

double mean_of(std::span<const double> values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::optional<double> mean_if_any(std::span<const double> values) {
  return values.empty() ? std::nullopt : std::optional(mean_of(values));
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

Interval median_interval(std::vector<double> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  // Each value lies below the true median with probability 1/2, so the chance that at most `k` of
  // them do is a sum of binomial coefficients.
  const auto count = static_cast<double>(values.size());
  double chance = std::pow(0.5, count), below = 0;
  std::size_t left_out = 0;  // on each side
  for (std::size_t k = 0; k < values.size() / 2; ++k) {
    below += chance;
    if (2 * below > 0.05) break;
    left_out = k;
    chance *= (count - static_cast<double>(k)) / static_cast<double>(k + 1);
  }
  return {values[left_out], values[values.size() - 1 - left_out]};
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
