// The passes over parameters: summing gradient slots and taking an optimizer's step.
#pragma once

#include <cstddef>
#include <span>

namespace regatta::cpu {

// sum += each of the others, in their order, in one pass over memory.
void reduce_slots(float* sum, std::span<const float* const> others, std::size_t count);

struct SgdStep {
  float learning_rate = 0, momentum = 0, weight_decay = 0;
};

// PyTorch's rule: v = momentum * v + (g + weight_decay * p); p -= learning_rate * v.
void sgd_step(const SgdStep& step, const float* gradient, float* velocity, float* parameters,
              std::size_t count);

}  // namespace regatta::cpu
