// Timings of the same work, gathered; and the shortest there is.
#pragma once

#include <map>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "profile/profile.h"

namespace regatta {

// Seconds. A profile keeps no zeros: what is too short to be measured counts as next to nothing,
// not as unknown.
inline constexpr double shortest_timing = 1e-9;

// Seconds, in the order they were seen, by signature, size and busy workers. `seen` stays.
using Timings = std::map<std::tuple<std::string_view, double, int>, std::vector<double>>;

inline Timings timings_of(std::span<const Observation> seen) {
  Timings timings;
  for (const Observation& each : seen)
    timings[{each.signature, each.size, each.busy}].push_back(each.seconds);
  return timings;
}

}  // namespace regatta
