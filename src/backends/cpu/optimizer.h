// The passes over parameters: summing gradient slots, measuring and clipping gradients, and taking
// an optimizer's step.
#pragma once

#include <cstddef>
#include <span>

#include "backends/update.h"

namespace regatta::cpu {

struct Bfloat16;

// sum += each of the others, in their order, in one pass over memory.
void reduce_slots(float* sum, std::span<const float* const> others, std::size_t count);

// The sum of squares of a bucket's gradient, in an order of its own that never changes. `mask`: as
// in UpdateStep, or null.
double sum_squares(const float* gradient, std::span<const BucketTensor> tensors,
                   const std::uint8_t* mask);

// Masks are read 32 bits at a time: so many bytes after the last float's must be readable.
constexpr std::size_t mask_padding = 3;

// PyTorch's clip_grad_norm_: what gradients are to be multiplied by, from the buckets' sums of
// squares.
float clip_scale(std::span<const double* const> sums, float longest);

// No value is infinite or not a number.
bool all_finite(const float* values, std::size_t count);
bool all_finite(const Bfloat16* values, std::size_t count);

// By PyTorch's rules: torch.optim.SGD, Adam, AdamW and RMSprop. LARS: see docs/recipes.md.
void update(const UpdateStep& step);

}  // namespace regatta::cpu
