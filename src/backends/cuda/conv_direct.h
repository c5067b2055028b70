// Convolutions without a library: depthwise ones, which are bound by memory, and those that cuDNN
// has no deterministic way to run.
#pragma once

#include "backends/cuda/kernel.h"

namespace regatta::cuda {

struct DirectConv {
  Dtype dtype = Dtype::f32;  // of values and weights
  bool channels_last = true;
  int n = 0, inputs = 0, height = 0, width = 0;
  int stored_inputs = 0;  // more where images are padded
  int outputs = 0, out_height = 0, out_width = 0;
  int kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0;
  int dilation_h = 1, dilation_w = 1;
  int groups = 1;

  bool depthwise() const { return groups > 1 && groups == inputs && groups == outputs; }
  __host__ __device__ int taps() const { return kernel_h * kernel_w; }
  __host__ __device__ int group_inputs() const { return inputs / groups; }
  __host__ __device__ int stored_group_inputs() const { return stored_inputs / groups; }
  __host__ __device__ int group_outputs() const { return outputs / groups; }
};

// `weights` as weight_form() packs them.
void direct_forward(const Tools& tools, const DirectConv& conv, const void* input,
                    const void* weights, void* output);
void direct_input_gradient(const Tools& tools, const DirectConv& conv, const void* weights,
                           const void* gradient, void* target, bool add);
// Straight into the parameter's gradient; sums never change from run to run.
std::size_t direct_workspace_bytes(const DirectConv& conv, int processors);
void direct_weight_gradient(const Tools& tools, const DirectConv& conv, const void* input,
                            const void* gradient, float* target, bool add, std::byte* workspace);

}  // namespace regatta::cuda
