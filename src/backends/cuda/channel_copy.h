// Copies rows of channels from one count to another, and what can ride along: the steps before and
// after a convolution or a matrix product that the libraries leave to us.
#pragma once

#include "backends/cuda/kernel.h"

namespace regatta::cuda {

struct ChannelCopy {
  const void* from = nullptr;
  void* to = nullptr;  // may be `from` where counts and types agree
  Dtype from_dtype = Dtype::f32, to_dtype = Dtype::f32;
  std::int64_t rows = 0;
  int from_channels = 0, to_channels = 0;  // channels beyond those of `from` become zero
  std::int64_t pixels = 1;  // of a plane, where channels are outside; counts are equal then

  const float* bias = nullptr;  // added to each channel
  const void* mask = nullptr;   // lies as `from` does: zero where this is not positive
  bool relu = false;
  bool add = false;  // to what `to` holds
};

void copy_channels(const Tools& tools, const ChannelCopy& copy);

}  // namespace regatta::cuda
