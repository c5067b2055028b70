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

// Energy of the steps `first` to `last`, or of all if `last` is 0. None if no counter is in joules.
// The one definition of a run's energy, measured or simulated.
std::optional<EnergyUse> energy_of(std::span<const Counter> counters, std::int64_t first,
                                   std::int64_t last);

}  // namespace regatta::trace
