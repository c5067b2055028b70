// Batch norm's passes over memory, on values that lie in blocks of channels. Each pass takes a
// range of samples and of blocks, so that callers cut the work as they like: sums are added to what
// is there, in the order of the calls. Values are float or Bfloat16 (T), all arithmetic is float's.
#pragma once

#include <cstdint>
#include <type_traits>

#include "graph/program.h"

namespace regatta::cpu {

// samples x blocks of channels x pixels x lanes: a pixel's channels of one block are `lanes` values
// side by side (8 or 16). Where channels are not padded to whole blocks, the last block has fewer.
struct ChannelBlocks {
  std::int64_t samples = 0, blocks = 0, pixels = 0, lanes = 16, last_lanes = 16;
  std::int64_t sample_stride = 0, block_stride = 0, pixel_stride = 0;  // in values

  std::int64_t values() const { return samples * blocks * pixels * lanes; }
};

// How backward knows which values the relu after the normalisation let through.
enum class ReluMask {
  none,    // there is no relu
  output,  // by the sign of the output, which is read
  input,   // by the sign of scale * input + shift, which is what forward has computed
};

// What backward reads; `output` is null unless the mask needs it.
template <class T>
struct NormGradient {
  const T *input, *output, *gradient;
  ReluMask mask;
};

// By channel, in whole blocks: what forward multiplies and adds, and the mean it has removed.
struct NormScale {
  const float *scale, *shift, *mean;
};

// By channel: input gradient = scale * gradient - offset - (input - mean) * slope.
struct NormSlope {
  const float *offset, *slope;
};

// sums += values, squares += their squares, by channel. Runs of `pixels_in_float` pixels are summed
// in float, the squares around the run's own mean; runs are joined in double. So large means cost
// no accuracy.
template <class T>
void add_sums(const ChannelBlocks& at, const T* values, double* sums, double* squares);

// output = scale * input + shift (+ residual), then relu. `residual` may be null.
template <class T>
void normalise(const ChannelBlocks& at, const T* input, const std::type_identity_t<T>* residual,
               T* output, const NormScale& by, bool relu);

// sums += gradient, products += gradient * (input - mean), by channel, of gradients that the relu
// let through. Runs are summed in float and joined in double.
template <class T>
void add_gradient_sums(const ChannelBlocks& at, const NormGradient<T>& from, const NormScale& by,
                       double* sums, double* products);

// Writes or adds the gradients of input and residual, as their modes say.
template <class T>
void apply_gradient(const ChannelBlocks& at, const NormGradient<T>& from, const NormScale& by,
                    const NormSlope& and_by, std::type_identity_t<T>* input_gradient,
                    GradientMode input_mode, std::type_identity_t<T>* residual_gradient,
                    GradientMode residual_mode);

}  // namespace regatta::cpu
