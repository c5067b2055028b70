// Which elements dropout lets through: a pure function of seed, step, sample and element, so that
// neither the cut nor the device has a say in it, and backward finds the same again.
#pragma once

#include <cstdint>

#include "base/random.h"
#include "graph/graph.h"

namespace regatta {

// What a dropout node draws with.
struct DropoutDraw {
  std::uint64_t stream = 0;
  float probability = 0;  // of an element to be dropped
  float scale = 1;        // what the others are multiplied by
};

DropoutDraw dropout_draw(const Node& node);

REGATTA_HOST_DEVICE constexpr std::uint64_t dropout_key(std::uint64_t seed, std::uint64_t stream,
                                                        std::uint64_t step) {
  return random_key(seed, stream ^ step);
}

// `index`: position of the sample in the global batch times its elements, plus the element's
// position in its sample as channels x height x width.
REGATTA_HOST_DEVICE constexpr bool dropout_keeps(std::uint64_t key, std::uint64_t index,
                                                 float probability) {
  return keyed_uniform(key, index) >= probability;
}

}  // namespace regatta
