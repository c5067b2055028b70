// Shares of a batch for unequal participants: workers, device groups or nodes. All uneven shares of
// a plan are computed here.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "base/ids.h"

namespace regatta {

// A worker, device group or node that gets a share of the batch.
struct Participant {
  // When it finishes a share of so many samples, from 1 to the batch. Must not fall as samples
  // grow.
  std::function<Seconds(std::int64_t samples)> finish;
  std::int64_t least = 1;  // samples; with 0 it may go without a share
  std::int64_t most = std::numeric_limits<std::int64_t>::max();  // samples that its memory holds
};

// A participant that finishes any share after `fixed` and `per_sample` for each sample.
Participant linear(Seconds fixed, Seconds per_sample);

// What a share of so many samples took.
struct TimedShare {
  std::int64_t samples = 0;
  Seconds took{0};
};
// A linear participant through both timings. If the smaller share took longer, or the shares differ
// by less than a factor of two (errors would be amplified), the fixed cost is unknown: then time is
// proportional to samples, as in `latest`.
Participant linear_through(const TimedShare& earlier, const TimedShare& latest);

// Samples of each participant: they add up to the batch, keep within each one's least and most, and
// let the last to finish do so as early as possible. Every share is a multiple of `granule`, but
// for the last one, which ends the batch. Of participants that would finish at the same time, the
// first gets the sample. Throws InputError if there are no such shares.
std::vector<std::int64_t> balanced_shares(std::span<const Participant> participants,
                                          std::int64_t batch, std::int64_t granule = 1);

// The same for participants without fixed costs, from their samples per second; each gets one
// sample, or granule, at least.
std::vector<std::int64_t> shares_by_speed(std::span<const double> speeds, std::int64_t batch,
                                          std::int64_t granule = 1);

}  // namespace regatta
