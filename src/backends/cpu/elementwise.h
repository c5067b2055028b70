// Loops over whole tensors, whatever their layout.
#pragma once

#include <cstddef>

namespace regatta::cpu {

// target[i] += source[i]
void add_to(float* target, const float* source, std::size_t count);
// target[i] = 0 where output[i] <= 0, else gradient[i]: the way back through a relu
void mask_by_sign(const float* output, const float* gradient, float* target, std::size_t count);

}  // namespace regatta::cpu
