// Finds the fastest of a few candidates by successive halving: each round all that are left are
// measured in turn, the slower half drops out, and the next round measures the rest twice as often.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "base/ids.h"

namespace regatta {

// The fewest measurements whose median ignores one that was disturbed.
inline constexpr std::size_t confirmations = 3;

struct ContestRules {
  std::function<Seconds(std::size_t candidate)> measure;  // one measurement of a candidate
  std::function<Seconds()> time_left;                     // at 0 no further measurement begins
};

// The time of each candidate; 0 for the last ones if there was no time to measure them. The first
// two are measured in any case. The time of the fastest is that of measurements which had no say in
// choosing it, if there is time for any; the others keep their distance to it.
std::vector<Seconds> contest(std::size_t candidates, const ContestRules& rules);

// Measurements that a contest of so many candidates takes in all.
std::size_t measurements_of_contest(std::size_t candidates);

}  // namespace regatta
