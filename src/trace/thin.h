// Curves that stay small: which points of a long one go.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace regatta::trace {

// Whether each of these points stays where at most `most` are to. The curve is divided into
// stretches of equal length by the points' places, which ascend; in each of them the points with
// the lowest and the highest value stay, and so does the last point of all.
std::vector<bool> extremes_of_stretches(std::span<const std::int64_t> places,
                                        std::span<const double> values, std::size_t most);

}  // namespace regatta::trace
