// Joules that a record tells of.
#pragma once

#include <optional>
#include <span>

#include "trace/trace.h"

namespace regatta::trace {

struct EnergyUse {
  double joules = 0;
  std::int64_t steps = 0;  // that have a counter of joules
  bool measured = true;    // all of them; else some are estimates

  double a_step() const { return joules / static_cast<double>(steps); }
};

// Of the steps `first` to `last`; 0 as `last`: of all. None without a counter of joules. Whoever
// tells the energy of a run, or of a simulated one, asks this.
std::optional<EnergyUse> energy_of(std::span<const Counter> counters, std::int64_t first,
                                   std::int64_t last);

}  // namespace regatta::trace
