// Measures the offsets between the clocks of a run's ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "transport/collectives.h"
#include "transport/transport.h"

namespace regatta {

// Returns the reading of this rank's clock, in nanoseconds.
using ClockReading = std::function<std::int64_t()>;
std::int64_t steady_nanoseconds();

struct ClockOffset {
  std::int64_t at = 0;      // when it was measured, by the first rank's clock, in nanoseconds
  std::int64_t offset = 0;  // the rank's clock minus the first rank's, in nanoseconds
  std::int64_t error = 0;   // the true offset is at most so many nanoseconds away
};

// Called by all ranks together. Returns the offsets by rank on the first rank, nothing on the
// others. The first rank asks each other rank for its reading several times, and takes the answer
// of the shortest round trip as the reading in the middle of that round trip. What is said of the
// clock of a rank that is lost means nothing.
std::vector<ClockOffset> measure_clocks(Transport& transport,
                                        const ClockReading& clock = steady_nanoseconds,
                                        const Lost& lost = {});

}  // namespace regatta
