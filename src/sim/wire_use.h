// When the wires of a platform carried something.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/world.h"

namespace regatta::sim {

// A time during which a wire always had a message on its way.
struct WireUse {
  int wire = 0;  // in Wiring::wires()
  double start = 0, end = 0, bytes = 0;
  std::int64_t messages = 0;
};

// By wire, then time; those of a wire do not overlap. `wires` are those that a route's messages
// take.
std::vector<WireUse> use_of_wires(const std::vector<World::Traffic>& traffic,
                                  const std::vector<std::vector<int>>& wires);

}  // namespace regatta::sim
