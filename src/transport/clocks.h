// How the clocks of the ranks of a run differ.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "transport/transport.h"

namespace regatta {

// What a rank's clock shows, in nanoseconds; by default std::chrono::steady_clock.
using ClockReading = std::function<std::int64_t()>;
std::int64_t steady_nanoseconds();

struct ClockOffset {
  std::int64_t at = 0;      // what the first rank's clock showed then, in nanoseconds
  std::int64_t offset = 0;  // the rank's clock minus the first rank's, in nanoseconds
  std::int64_t error = 0;   // the true offset is at most so many nanoseconds away
};

// By rank, on the first rank; empty on the others. Called by all ranks together. The first asks
// each other rank for its time, and takes the middle of the shortest of a few round trips.
std::vector<ClockOffset> measure_clocks(Transport& transport,
                                        const ClockReading& clock = steady_nanoseconds);

}  // namespace regatta
