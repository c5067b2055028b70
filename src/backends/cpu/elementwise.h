// Loops over whole tensors, whatever their layout.
#pragma once

#include <cstddef>

namespace regatta::cpu {

// target[i] += source[i]
void add_to(float* target, const float* source, std::size_t count);
// target[i] = gradient[i] where output[i] > 0, else 0: the way back through a relu
void mask_by_sign(const float* output, const float* gradient, float* target, std::size_t count);

}  // namespace regatta::cpu
