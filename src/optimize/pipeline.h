// Pipelines: consecutive segments as stages on devices, a batch going through them chunk by chunk.
#pragma once

#include <vector>

#include "optimize/model.h"

namespace regatta::optimize {

// A device that owns segments `first` to `last`, both included.
struct StageUse {
  int kind = 0, device = 0, state = 0;
  std::size_t first = 0, last = 0;
  auto operator<=>(const StageUse&) const = default;
};

struct Pipeline {
  std::vector<StageUse> stages;  // in the order of segments, each on a device of its own
  std::int64_t chunks = 1;
  Outcome outcome;
};

// Chunks that a batch is cut into for so many stages.
std::int64_t chunks_for(std::int64_t batch, std::size_t stages);

// A step fills and drains: a chunk takes each stage its time and each border the time of its values
// and their gradients on the link; the slowest of all of them takes it for every further chunk.
//   step = sum over stages and borders + (chunks - 1) * the slowest
Outcome outcome_of(const Problem& problem, const std::vector<StageUse>& stages,
                   std::int64_t chunks);

// The best pipelines of two to `most_stages` stages, no two on the same devices in the same order.
// For each order of devices the borders are chosen by dynamic programming over segments, which
// keeps all partial pipelines that no other is better than in sum, slowest and joules: so it is
// exact by the model. Each stage is on a node of its own, or on another GPU of it.
std::vector<Pipeline> best_pipelines(const Problem& problem, Objective objective,
                                     const Limits& limits, std::size_t most_stages,
                                     std::size_t keep);

}  // namespace regatta::optimize
