#include "backends/cpu/optimizer.h"

#include <algorithm>

#include "backends/cpu/elementwise.h"
#include "backends/cpu/vector.h"

namespace regatta::cpu {

void reduce_slots(float* sum, std::span<const float* const> others, std::size_t count) {
  // A piece of the sum stays in the first cache while all slots are added to it.
  constexpr std::size_t piece = 4096;
  for (std::size_t begin = 0; begin < count; begin += piece)
    for (const float* other : others)
      add_to(sum + begin, other + begin, std::min(piece, count - begin));
}

REGATTA_CLONES void sgd_step(const SgdStep& step, const float* gradient, float* velocity,
                             float* parameters, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const float slope = gradient[i] + step.weight_decay * parameters[i];
    velocity[i] = step.momentum * velocity[i] + slope;
    parameters[i] -= step.learning_rate * velocity[i];
  }
}

}  // namespace regatta::cpu
