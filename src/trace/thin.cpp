#include "trace/thin.h"

#include <algorithm>

namespace regatta::trace {

std::vector<bool> extremes_of_stretches(std::span<const std::int64_t> places,
                                        std::span<const double> values, std::size_t most) {
  std::vector<bool> stays(places.size(), places.size() <= most);
  if (places.size() <= most) return stays;
  const auto stretches = static_cast<std::int64_t>(std::max<std::size_t>(1, (most - 1) / 2));
  const std::int64_t all = places.back() - places.front() + 1;
  const std::int64_t length = (all + stretches - 1) / stretches;
  for (std::size_t begin = 0, end = 0; begin < places.size(); begin = end) {
    const std::int64_t stretch = (places[begin] - places.front()) / length;
    while (end < places.size() && (places[end] - places.front()) / length == stretch) ++end;
    const auto [low, high] = std::ranges::minmax_element(values.subspan(begin, end - begin));
    stays[static_cast<std::size_t>(low - values.begin())] = true;
    stays[static_cast<std::size_t>(high - values.begin())] = true;
  }
  stays.back() = true;
  return stays;
}

}  // namespace regatta::trace
