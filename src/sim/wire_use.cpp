#include "sim/wire_use.h"

#include <algorithm>
#include <tuple>

namespace regatta::sim {

std::vector<WireUse> use_of_wires(const std::vector<World::Traffic>& traffic,
                                  const std::vector<std::vector<int>>& wires) {
  std::vector<WireUse> uses;
  for (const World::Traffic& each : traffic)
    for (const int wire : wires[static_cast<std::size_t>(each.route)])
      uses.push_back({wire, each.start, each.end, each.bytes, each.messages});
  std::ranges::sort(uses, {}, [](const WireUse& use) { return std::tuple(use.wire, use.start); });
  // What different routes send over a wire at one time becomes one use.
  std::vector<WireUse> apart;
  for (const WireUse& use : uses) {
    if (apart.empty() || apart.back().wire != use.wire || apart.back().end < use.start) {
      apart.push_back(use);
      continue;
    }
    WireUse& before = apart.back();
    before.end = std::max(before.end, use.end);
    before.bytes += use.bytes;
    before.messages += use.messages;
  }
  return apart;
}

}  // namespace regatta::sim
