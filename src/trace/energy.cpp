#include "trace/energy.h"

#include <set>

namespace regatta::trace {

std::optional<EnergyUse> energy_of(std::span<const Counter> counters, std::int64_t first,
                                   std::int64_t last) {
  EnergyUse use;
  std::set<std::int64_t> steps;
  for (const Counter& counter : counters) {
    if (counter.unit != "J" || (last > 0 && (counter.step < first || counter.step > last)))
      continue;
    use.joules += counter.value;
    use.measured = use.measured && counter.source == "measured";
    steps.insert(counter.step);
  }
  use.steps = static_cast<std::int64_t>(steps.size());
  if (steps.empty()) return std::nullopt;
  return use;
}

}  // namespace regatta::trace
