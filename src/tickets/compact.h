// The network that is left of a masked one: the same logits with fewer channels.
#pragma once

#include "tickets/channels.h"
#include "train/masking.h"

namespace regatta::tickets {

struct Compacted {
  Graph network;    // not fused
  Weights weights;  // of every parameter and state of it
  Mask mask;        // of it: weights that stay are those that stayed, and those of constants
  std::int64_t channels_before = 0, channels_after = 0;  // of convolutions and dense layers
};

// `network` is not fused; of `weights`, what `mask` masks counts as zero. In evaluation the result
// computes what the network does, but for rounding. Trained on, it is a network of its own.
Compacted compact(const Graph& network, Weights weights, const Mask& mask);

}  // namespace regatta::tickets
