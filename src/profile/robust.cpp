#include "profile/robust.h"

#include <algorithm>
#include <cmath>

namespace regatta {
namespace {

// The middle of the tightest half: where most values agree, however far the others are.
double centre(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2 + 1;
  std::size_t best = 0;
  for (std::size_t i = 0; i + half <= values.size(); ++i)
    if (values[i + half - 1] - values[i] < values[best + half - 1] - values[best]) best = i;
  return median({values.begin() + static_cast<std::ptrdiff_t>(best),
                 values.begin() + static_cast<std::ptrdiff_t>(best + half)});
}

double deviation(std::span<const double> values, double from) {
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::abs(value - from));
  constexpr double of_a_normal_distribution = 1.4826;
  return of_a_normal_distribution * median(std::move(distances));
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

Typical typical(std::span<const double> values) {
  if (values.empty()) return {};
  const double about = centre({values.begin(), values.end()});
  // A clock that ticks coarsely must not make its neighbours outliers.
  const double room = std::max(4 * deviation(values, about), 0.02 * about);
  std::vector<double> kept, odd, even;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::abs(values[i] - about) > room) continue;
    (kept.size() % 2 == 0 ? even : odd).push_back(values[i]);
    kept.push_back(values[i]);
  }
  Typical found{.value = median(kept),
                .spread = deviation(kept, median(kept)),
                .count = static_cast<int>(kept.size()),
                .split = 0};
  if (!odd.empty() && found.value > 0)
    found.split = std::abs(median(odd) - median(even)) / found.value;
  return found;
}

double Typical::error() const {
  if (value <= 0 || count == 0) return 1;
  // Of few values the spread itself is hardly known.
  const double unsure = 0.25 / (count * count);
  return 1.96 * 1.2533 * spread / value / std::sqrt(count) + unsure;
}

}  // namespace regatta
