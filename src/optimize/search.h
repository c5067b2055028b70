// The choice of devices, states and shares: all of them where they are few, a search otherwise.
#pragma once

#include <vector>

#include "optimize/model.h"

namespace regatta::optimize {

struct Found {
  std::vector<Choice> best;  // by their value, best first; those that keep the limits before others
  bool every_choice = false;  // was tried: by the model, none is better
  std::int64_t tried = 0;
};

// At most `keep` choices that use different devices. Deterministic. Empty: no choice of devices
// can hold the batch.
Found search(const Problem& problem, Objective objective, const Limits& limits, std::size_t keep);

// What anyone would try first: all devices at full speed, and one device alone of each kind. Those
// that can hold the batch.
std::vector<Choice> plain_choices(const Problem& problem, Objective objective,
                                  const Limits& limits);

}  // namespace regatta::optimize
