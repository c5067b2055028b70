#include "profile/robust.h"

#include <algorithm>
#include <cmath>

namespace regatta {
namespace {

struct Crowd {
  double middle, spread;
};

// Where values crowd: the tightest third of many, of few the tightest half; the others may be as
// far away as they like. Of two crowds about as tight the faster one: disturbances only add time.
Crowd crowd_of(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t members = values.size() / (values.size() < 12 ? 2 : 3) + 1;
  const auto looseness = [&](std::size_t first) {
    return (values[first + members - 1] - values[first]) / values[first];
  };
  std::size_t best = 0;
  for (std::size_t i = 0; i + members <= values.size(); ++i)
    if (looseness(i) < looseness(best)) best = i;
  const double tight = 3 * looseness(best);
  for (std::size_t i = best; i-- > 0;)
    if (looseness(i) <= tight) best = i;
  // A third of a normal distribution lies within 0.86 standard deviations, half within 1.35.
  const double share = static_cast<double>(members) / static_cast<double>(values.size());
  const double width = values[best + members - 1] - values[best];
  return {median({values.begin() + static_cast<std::ptrdiff_t>(best),
                  values.begin() + static_cast<std::ptrdiff_t>(best + members)}),
          width / (2.65 * share)};
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
  const auto [about, spread] = crowd_of({values.begin(), values.end()});
  // A clock that ticks coarsely must not make its neighbours outliers.
  const double room = std::max(4 * spread, 0.02 * about);
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
  // With few values the spread itself is hardly known.
  const double unsure = error_of_one_timing / (count * count);
  return 1.96 * 1.2533 * spread / value / std::sqrt(count) * (1 + 2.0 / count) + unsure;
}

}  // namespace regatta
