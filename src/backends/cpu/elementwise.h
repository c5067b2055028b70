// Loops over whole tensors, whatever their layout, in fp32 and in bf16.
#pragma once

#include <cstddef>

namespace regatta::cpu {

struct Bfloat16;

// target[i] += source[i]
void add_to(float* target, const float* source, std::size_t count);
void add_to(Bfloat16* target, const Bfloat16* source, std::size_t count);
// values[i] = 0 where values[i] < 0
void rectify(float* values, std::size_t count);
void rectify(Bfloat16* values, std::size_t count);
// target[i] = 0 where output[i] <= 0, else gradient[i]: the way back through a relu
void mask_by_sign(const float* output, const float* gradient, float* target, std::size_t count);
void mask_by_sign(const Bfloat16* output, const Bfloat16* gradient, Bfloat16* target,
                  std::size_t count);

}  // namespace regatta::cpu
