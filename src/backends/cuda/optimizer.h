// The passes over parameters: summing gradient slots and taking an optimizer's step.
#pragma once

#include <cstddef>
#include <span>

#include "backends/cuda/cuda_backend.h"

namespace regatta::cuda {

// sum += each of the others, in their order, in one pass over memory.
void reduce_slots(Stream stream, float* sum, std::span<const float* const> others,
                  std::size_t count);

// PyTorch's rule: v = momentum * v + (g + weight_decay * p); p -= learning_rate * v.
// `hyper` lies on the device, so that a captured graph follows a learning rate that changes:
// learning_rate, momentum, weight_decay.
void sgd_step(Stream stream, const float* hyper, const float* gradient, float* velocity,
              float* parameters, std::size_t count);

}  // namespace regatta::cuda
