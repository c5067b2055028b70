// Where the values of a sample lie in its layout, and the ways to and from plain planes.
#pragma once

#include <cstdint>

#include "base/shape.h"
#include "graph/program.h"

namespace regatta::cpu {

// Where channel c of pixel p lies in one sample: base(c) + p * block.
struct Placement {
  Placement(const Shape& shape, Layout layout)
      : channels(shape.channels()),
        pixels(shape.height() * shape.width()),
        block(shape.rank() == 3 ? channel_block(layout) : 1),
        padded((channels + block - 1) / block * block) {}
  std::int64_t base(std::int64_t channel) const {
    return channel / block * block * pixels + channel % block;
  }
  std::int64_t plain_size() const { return channels * pixels; }
  std::int64_t size() const { return padded * pixels; }  // padding included
  std::int64_t channels, pixels, block, padded;
};

// `n` samples from their layout into plain channels x pixels. Here and below T is float or
// Bfloat16.
template <class T>
void to_planes(const Placement& place, std::int64_t n, const T* values, T* planes);
// The reverse of to_planes(). Leaves zeros in channels that only pad; with `none` nothing is done.
template <class T>
void from_planes(const Placement& place, std::int64_t n, const T* planes, T* values,
                 GradientMode mode);
// Zeros in channels that only pad.
template <class T>
void clear_padding(const Placement& place, std::int64_t n, T* values);

}  // namespace regatta::cpu
