#include "report/warm_up.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "report/statistics.h"

namespace regatta {
namespace {

using Series = std::vector<double>;

constexpr std::size_t most_points = 4096;    // longer series are read in bins
constexpr std::size_t shortest_stretch = 3;  // a lone slow step is an outlier, not a stretch
constexpr double least_deviation = 0.002;    // clocks and caches are never quieter than this

Series slice(std::span<const double> series, std::size_t begin, std::size_t end) {
  return {series.begin() + static_cast<std::ptrdiff_t>(begin),
          series.begin() + static_cast<std::ptrdiff_t>(end)};
}

// Hampel's filter: what lies far from the median of its neighbourhood is pulled there.
Series without_outliers(std::span<const double> series) {
  constexpr std::size_t reach = 3;
  Series clipped(series.begin(), series.end());
  for (std::size_t i = 0; i < series.size(); ++i) {
    const Series around =
        slice(series, i < reach ? 0 : i - reach, std::min(series.size(), i + reach + 1));
    const double middle = median_of(around);
    if (std::abs(series[i] - middle) > 3 * robust_deviation(around)) clipped[i] = middle;
  }
  return clipped;
}

// The deviation of the noise alone: the difference of neighbours has nothing of their level.
double noise_of(std::span<const double> series) {
  Series differences;
  for (std::size_t i = 1; i < series.size(); ++i) differences.push_back(series[i] - series[i - 1]);
  return std::max(least_deviation, robust_deviation(differences) / std::sqrt(2.0));
}

// Squared distances from the mean, of any stretch, in constant time.
class SquaredDistances {
 public:
  explicit SquaredDistances(const Series& series) : sum_(1, 0.0), squares_(1, 0.0) {
    for (const double value : series) {
      sum_.push_back(sum_.back() + value);
      squares_.push_back(squares_.back() + value * value);
    }
  }
  double of(std::size_t begin, std::size_t end) const {
    const double sum = sum_[end] - sum_[begin];
    return squares_[end] - squares_[begin] - sum * sum / static_cast<double>(end - begin);
  }

 private:
  Series sum_, squares_;
};

struct Stretch {
  std::size_t begin = 0, end = 0;
  double level = 0;  // logarithm of the median duration
  std::size_t steps() const { return end - begin; }
};

std::vector<Stretch> stretches_of(const Series& logs) {
  const std::size_t bin = (logs.size() + most_points - 1) / most_points;
  Series binned;
  for (std::size_t i = 0; i < logs.size(); i += bin)
    binned.push_back(median_of(slice(logs, i, std::min(logs.size(), i + bin))));
  std::vector<Stretch> found;
  for (const std::size_t begin : change_points(binned)) {
    if (!found.empty()) found.back().end = begin * bin;
    found.push_back({begin * bin, logs.size(), 0});
  }
  for (Stretch& stretch : found) stretch.level = median_of(slice(logs, stretch.begin, stretch.end));
  return found;
}

std::size_t steps_near(const std::vector<Stretch>& stretches, double level, double tolerance) {
  std::size_t steps = 0;
  for (const Stretch& stretch : stretches)
    if (std::abs(stretch.level - level) <= tolerance) steps += stretch.steps();
  return steps;
}

}  // namespace

std::string_view course_name(Course course) {
  switch (course) {
    case Course::flat:
      return "flat";
    case Course::warm_up:
      return "warm-up";
    case Course::slowdown:
      return "slowdown";
    case Course::unsteady:
      return "unsteady";
  }
  throw Error("unknown course");
}

std::vector<std::size_t> change_points(std::span<const double> series) {
  const std::size_t count = series.size();
  if (count < 2 * shortest_stretch) return {0};
  const double noise = noise_of(series);
  const SquaredDistances cost(without_outliers(series));
  // Twice what Schwarz's criterion asks of a new stretch: noise of steps is not quite independent.
  const double penalty = 4 * noise * noise * std::log(static_cast<double>(count));

  // best[t]: the least cost of the first t values; a start that can never win again is dropped.
  Series best(count + 1, std::numeric_limits<double>::infinity());
  std::vector<std::size_t> last_cut(count + 1, 0), starts{0};
  best[0] = -penalty;
  for (std::size_t end = shortest_stretch; end <= count; ++end) {
    for (const std::size_t start : starts) {
      const double total = best[start] + cost.of(start, end) + penalty;
      if (total < best[end]) {
        best[end] = total;
        last_cut[end] = start;
      }
    }
    std::erase_if(starts,
                  [&](std::size_t start) { return best[start] + cost.of(start, end) > best[end]; });
    if (const std::size_t next = end + 1 - shortest_stretch; next >= shortest_stretch)
      starts.push_back(next);
  }
  std::vector<std::size_t> cuts;
  for (std::size_t end = count; end > 0; end = last_cut[end]) cuts.push_back(last_cut[end]);
  std::ranges::reverse(cuts);
  return cuts;
}

WarmUp find_warm_up(std::span<const double> durations, double tolerance) {
  WarmUp found;
  found.steady_until = durations.size();
  if (durations.empty()) return found;
  Series logs;
  for (const double duration : durations) logs.push_back(std::log(duration));
  const double near = std::log1p(tolerance);

  // The steady speed is the one that most steps have; of equals, the later.
  const std::vector<Stretch> stretches = stretches_of(logs);
  double level = 0;
  std::size_t most = 0;
  for (const Stretch& stretch : stretches)
    if (const std::size_t steps = steps_near(stretches, stretch.level, near); steps >= most) {
      most = steps;
      level = stretch.level;
    }
  const auto is_steady = [&](const Stretch& s) { return std::abs(s.level - level) <= near; };
  Series steady;
  for (const Stretch& stretch : stretches)
    if (is_steady(stretch))
      for (std::size_t i = stretch.begin; i < stretch.end; ++i) steady.push_back(logs[i]);
  found.steady = std::exp(median_of(steady));

  const auto first = std::ranges::find_if(stretches, is_steady);
  const bool lasts = 2 * most >= durations.size();
  if (lasts) {
    found.steps = first->begin;
    for (const Stretch& stretch : stretches)
      if (is_steady(stretch)) found.steady_until = stretch.end;
  }
  // One or two slow first steps are no stretch, and yet the most common warm-up of all.
  const double far = std::max(near, 4 * robust_deviation(steady));
  while (found.steps + 1 < found.steady_until && logs[found.steps] > std::log(found.steady) + far)
    ++found.steps;

  found.seconds = std::accumulate(
      durations.begin(), durations.begin() + static_cast<std::ptrdiff_t>(found.steps), 0.0);
  const double before = found.seconds / static_cast<double>(std::max<std::size_t>(found.steps, 1));
  if (!lasts)
    found.course = Course::unsteady;
  else if (found.steps > 0)
    found.course = before > found.steady ? Course::warm_up : Course::slowdown;
  return found;
}

}  // namespace regatta
