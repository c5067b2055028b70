// The dense layer on bf16 values.
#pragma once

#include "backends/cpu/kernel.h"

namespace regatta::cpu {

// Reads the weights as round_dense_weights() leaves them.
std::unique_ptr<Kernel> make_dense_bf16(const Site& site);

// Bytes of the rounded weights, which keep the order in which the parameters are stored.
std::size_t rounded_bytes(const Shape& weights);
void round_dense_weights(const Shape& weights, const float* parameters, std::byte* packed);

}  // namespace regatta::cpu
