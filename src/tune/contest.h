// Who is fastest of a few, when every measurement errs: they take turns, and who falls behind drops
// out.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace regatta {

struct ContestRules {
  std::function<double(std::size_t)> turn;  // of an actor: what it took by its own measure
  std::function<double()> seconds_left;     // the first two have a turn in any case
};

// What each takes; 0 for the last ones if there was no time for them. The time of the fastest is
// that of turns which had no say in making it so, if there is time for any and one was near.
std::vector<double> contest(std::size_t actors, const ContestRules& rules);

}  // namespace regatta
