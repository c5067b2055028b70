// What rides along with a convolution or a matrix product but is left to us by the libraries: bias
// and relu after it, the relu's gradient before its backward.
#pragma once

#include "backends/cuda/kernel.h"

namespace regatta::cuda {

// Values of channels that lie innermost (pixels = 1) or outside, in planes of `pixels`.
struct FusedForward {
  void* values = nullptr;  // in place
  Dtype dtype = Dtype::f32;
  std::int64_t count = 0, pixels = 1, channels = 1;
  const float* bias = nullptr;  // null: none
  bool relu = false;
};
void finish_forward(const Tools& tools, const FusedForward& work);

// target = gradient where output > 0 (everywhere, where `output` is null), else 0.
struct FusedBackward {
  const void *output = nullptr, *gradient = nullptr;
  Dtype dtype = Dtype::f32;  // of both
  void* target = nullptr;
  Dtype target_dtype = Dtype::f32;
  std::int64_t count = 0;
};
void begin_backward(const Tools& tools, const FusedBackward& work);

}  // namespace regatta::cuda
