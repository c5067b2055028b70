#include "backends/cpu/batch_norm_loops.h"

#include "backends/cpu/bfloat16.h"
#include "backends/cpu/lanes.h"
#include "backends/cpu/vector.h"

namespace regatta::cpu {
namespace {

// Pixels whose values are summed in float before they join a sum in double. Four sums side by side
// hide the latency of adding; each takes 16 values, so rounding stays within a few units in the
// last place. A run of 16 channels is 4 KiB: it stays in the first cache for its second sweep.
constexpr std::int64_t pixels_in_float = 64, side_by_side = 4;

// One pixel of one block as a vector: all its lanes, or the first few of them.
template <int LANES>
struct WholePixel {
  static constexpr int lanes = LANES;
  using Vector = typename Lanes<LANES>::Floats;
  REGATTA_INLINE void load(Vector& value, const float* from) const {
    std::memcpy(&value, from, sizeof value);
  }
  REGATTA_INLINE void store(const Vector& value, float* to) const {
    std::memcpy(to, &value, sizeof value);
  }
  REGATTA_INLINE void load(Vector& value, const Bfloat16* from) const {
    typename Lanes<LANES>::Halves halves;
    std::memcpy(&halves, from, sizeof halves);
    widen_lanes<LANES>(halves, value);
  }
  REGATTA_INLINE void store(const Vector& value, Bfloat16* to) const {
    typename Lanes<LANES>::Halves halves;
    narrow_lanes<LANES>(value, halves);
    std::memcpy(to, &halves, sizeof halves);
  }
};
struct PartOfPixel {
  static constexpr int lanes = 16;
  using Vector = typename Lanes<16>::Floats;
  REGATTA_INLINE void load(Vector& value, const float* from) const {
    value = Vector{};
    std::memcpy(&value, from, static_cast<std::size_t>(used) * sizeof(float));
  }
  REGATTA_INLINE void store(const Vector& value, float* to) const {
    std::memcpy(to, &value, static_cast<std::size_t>(used) * sizeof(float));
  }
  REGATTA_INLINE void load(Vector& value, const Bfloat16* from) const {
    Lanes<16>::Halves halves{};
    std::memcpy(&halves, from, static_cast<std::size_t>(used) * sizeof(Bfloat16));
    widen_lanes<16>(halves, value);
  }
  REGATTA_INLINE void store(const Vector& value, Bfloat16* to) const {
    Lanes<16>::Halves halves;
    narrow_lanes<16>(value, halves);
    std::memcpy(to, &halves, static_cast<std::size_t>(used) * sizeof(Bfloat16));
  }
  std::int64_t used;
};

// body(pixel, sample, block) for every block of every sample, in the order of memory.
template <class Body>
REGATTA_INLINE void for_each_block(const ChannelBlocks& at, const Body& body) {
  for (std::int64_t n = 0; n < at.samples; ++n)
    for (std::int64_t b = 0; b < at.blocks; ++b)
      if (b + 1 == at.blocks && at.last_lanes < at.lanes)
        body(PartOfPixel{at.last_lanes}, n, b);
      else if (at.lanes == 16)
        body(WholePixel<16>{}, n, b);
      else
        body(WholePixel<8>{}, n, b);
}

// body(first pixel, pixels) for every run of a block.
template <class Body>
REGATTA_INLINE void for_each_run(std::int64_t pixels, const Body& body) {
  for (std::int64_t first = 0; first < pixels; first += pixels_in_float)
    body(first, pixels - first < pixels_in_float ? pixels - first : pixels_in_float);
}

// Vectors without pixels: samples take the pixels' place, so that runs are long.
ChannelBlocks samples_as_pixels(const ChannelBlocks& at) {
  if (at.pixels != 1) return at;
  ChannelBlocks turned = at;
  turned.samples = 1;
  turned.sample_stride = 0;
  turned.pixels = at.samples;
  turned.pixel_stride = at.sample_stride;
  return turned;
}

template <class Pixel>
using VectorOf = typename std::remove_reference_t<Pixel>::Vector;

// add(sums, i) for each of `count` pixels, into sums that lie side by side, which then become one.
template <class Vector, class Add>
REGATTA_INLINE void sum_side_by_side(std::int64_t count, Vector& first, Vector& second,
                                     const Add& add) {
  Vector a[side_by_side] = {}, b[side_by_side] = {};
  std::int64_t i = 0;
  for (; i + side_by_side <= count; i += side_by_side) {
    REGATTA_UNROLL
    for (int u = 0; u < side_by_side; ++u) add(i + u, a[u], b[u]);
  }
  for (; i < count; ++i) add(i, a[0], b[0]);
  first = (a[0] + a[1]) + (a[2] + a[3]);
  second = (b[0] + b[1]) + (b[2] + b[3]);
}

// The first sweep finds a mean that is only nearly the run's; sums around it are small, so that
// floats hold them well, and say in double what the run's true sums are.
template <class Pixel, class T>
REGATTA_INLINE void add_run(const Pixel& pixel, const T* from, std::int64_t stride,
                            std::int64_t count, double* sums, double* squares) {
  using Vector = VectorOf<Pixel>;
  Vector sum, rest, deviations, none;
  sum_side_by_side(
      count, sum, none, [&](std::int64_t i, Vector & s, Vector&) __attribute__((always_inline)) {
        Vector value;
        pixel.load(value, from + i * stride);
        s += value;
      });
  const Vector mean = sum * (1.0f / static_cast<float>(count));
  sum_side_by_side(
      count, rest,
      deviations, [&](std::int64_t i, Vector & s, Vector & q) __attribute__((always_inline)) {
        Vector value;
        pixel.load(value, from + i * stride);
        // The next run comes nearer while this one is in the first cache.
        __builtin_prefetch(from + (i + pixels_in_float) * stride);
        value -= mean;
        s += value;
        q += value * value;
      });
  const auto pixels = static_cast<double>(count);
  for (int l = 0; l < Pixel::lanes; ++l) {
    const double near = mean[l], beside = rest[l];
    sums[l] += pixels * near + beside;
    squares[l] += static_cast<double>(deviations[l]) + near * (2 * beside + pixels * near);
  }
}

template <ReluMask MASK, class Pixel, class T>
REGATTA_INLINE void masked(const Pixel& pixel, const NormGradient<T>& from, std::int64_t at,
                           const VectorOf<Pixel>& input, const VectorOf<Pixel>& scale,
                           const VectorOf<Pixel>& shift, VectorOf<Pixel>& gradient) {
  using Vector = VectorOf<Pixel>;
  pixel.load(gradient, from.gradient + at);
  // Not a number is neither above nor below zero: it passes.
  if constexpr (MASK == ReluMask::input)
    gradient = input * scale + shift <= Vector{} ? Vector{} : gradient;
  if constexpr (MASK == ReluMask::output) {
    Vector output;
    pixel.load(output, from.output + at);
    gradient = output <= Vector{} ? Vector{} : gradient;
  }
}

template <bool RELU, bool RESIDUAL, class T>
REGATTA_INLINE void normalise_blocks(const ChannelBlocks& at, const T* input, const T* residual,
                                     T* output, const NormScale& by) {
  for_each_block(
      at, [&](const auto& pixel, std::int64_t n, std::int64_t b) __attribute__((always_inline)) {
        using Vector = VectorOf<decltype(pixel)>;
        Vector scale, shift;
        std::memcpy(&scale, by.scale + b * at.lanes, sizeof scale);
        std::memcpy(&shift, by.shift + b * at.lanes, sizeof shift);
        std::int64_t i = n * at.sample_stride + b * at.block_stride;
        for (std::int64_t p = 0; p < at.pixels; ++p, i += at.pixel_stride) {
          Vector value;
          pixel.load(value, input + i);
          value = value * scale + shift;
          if constexpr (RESIDUAL) {
            Vector other;
            pixel.load(other, residual + i);
            value += other;
          }
          if constexpr (RELU) value = value < Vector{} ? Vector{} : value;
          pixel.store(value, output + i);
        }
      });
}

template <ReluMask MASK, class T>
REGATTA_INLINE void add_gradient_sums_of(const ChannelBlocks& at, const NormGradient<T>& from,
                                         const NormScale& by, double* sums, double* products) {
  for_each_block(
      at, [&](const auto& pixel, std::int64_t n, std::int64_t b) __attribute__((always_inline)) {
        using Pixel = std::remove_cvref_t<decltype(pixel)>;
        using Vector = VectorOf<Pixel>;
        Vector scale, shift, mean;
        std::memcpy(&scale, by.scale + b * at.lanes, sizeof scale);
        std::memcpy(&shift, by.shift + b * at.lanes, sizeof shift);
        std::memcpy(&mean, by.mean + b * at.lanes, sizeof mean);
        const std::int64_t begin = n * at.sample_stride + b * at.block_stride;
        for_each_run(
            at.pixels, [&](std::int64_t first, std::int64_t count) __attribute__((always_inline)) {
              Vector sum, product;
              sum_side_by_side(
                  count, sum, product,
                  [&](std::int64_t p, Vector & s, Vector & q) __attribute__((always_inline)) {
                    const std::int64_t i = begin + (first + p) * at.pixel_stride;
                    Vector input, gradient;
                    pixel.load(input, from.input + i);
                    masked<MASK>(pixel, from, i, input, scale, shift, gradient);
                    s += gradient;
                    q += gradient * (input - mean);
                  });
              for (int l = 0; l < Pixel::lanes; ++l) {
                sums[b * at.lanes + l] += static_cast<double>(sum[l]);
                products[b * at.lanes + l] += static_cast<double>(product[l]);
              }
            });
      });
}

template <GradientMode MODE, class Pixel, class T>
REGATTA_INLINE void leave(const Pixel& pixel, const VectorOf<Pixel>& value, T* to) {
  if constexpr (MODE == GradientMode::write) pixel.store(value, to);
  if constexpr (MODE == GradientMode::add) {
    VectorOf<Pixel> there;
    pixel.load(there, to);
    there += value;
    pixel.store(there, to);
  }
}

template <ReluMask MASK, GradientMode INPUT, GradientMode RESIDUAL, class T>
REGATTA_INLINE void apply_gradient_to(const ChannelBlocks& at, const NormGradient<T>& from,
                                      const NormScale& by, const NormSlope& and_by,
                                      T* input_gradient, T* residual_gradient) {
  for_each_block(
      at, [&](const auto& pixel, std::int64_t n, std::int64_t b) __attribute__((always_inline)) {
        using Vector = VectorOf<decltype(pixel)>;
        Vector scale, shift, mean, offset, slope;
        std::memcpy(&scale, by.scale + b * at.lanes, sizeof scale);
        std::memcpy(&shift, by.shift + b * at.lanes, sizeof shift);
        std::memcpy(&mean, by.mean + b * at.lanes, sizeof mean);
        std::memcpy(&offset, and_by.offset + b * at.lanes, sizeof offset);
        std::memcpy(&slope, and_by.slope + b * at.lanes, sizeof slope);
        std::int64_t i = n * at.sample_stride + b * at.block_stride;
        for (std::int64_t p = 0; p < at.pixels; ++p, i += at.pixel_stride) {
          Vector input, gradient;
          pixel.load(input, from.input + i);
          masked<MASK>(pixel, from, i, input, scale, shift, gradient);
          leave<INPUT>(pixel, scale * gradient - offset - (input - mean) * slope,
                       input_gradient + i);
          leave<RESIDUAL>(pixel, gradient, residual_gradient + i);
        }
      });
}

template <ReluMask MASK, GradientMode INPUT, class T>
REGATTA_INLINE void apply_gradient_by(const ChannelBlocks& at, const NormGradient<T>& from,
                                      const NormScale& by, const NormSlope& and_by, T* input,
                                      T* residual, GradientMode mode) {
  using enum GradientMode;
  if (mode == none)
    apply_gradient_to<MASK, INPUT, none>(at, from, by, and_by, input, residual);
  else if (mode == write)
    apply_gradient_to<MASK, INPUT, write>(at, from, by, and_by, input, residual);
  else
    apply_gradient_to<MASK, INPUT, add>(at, from, by, and_by, input, residual);
}

template <ReluMask MASK, class T>
REGATTA_INLINE void apply_masked(const ChannelBlocks& at, const NormGradient<T>& from,
                                 const NormScale& by, const NormSlope& and_by, T* input,
                                 GradientMode input_mode, T* residual, GradientMode residual_mode) {
  using enum GradientMode;
  if (input_mode == none)
    apply_gradient_by<MASK, none>(at, from, by, and_by, input, residual, residual_mode);
  else if (input_mode == write)
    apply_gradient_by<MASK, write>(at, from, by, and_by, input, residual, residual_mode);
  else
    apply_gradient_by<MASK, add>(at, from, by, and_by, input, residual, residual_mode);
}

template <class T>
REGATTA_INLINE void add_sums_of(const ChannelBlocks& at, const T* values, double* sums,
                                double* squares) {
  for_each_block(
      at, [&](const auto& pixel, std::int64_t n, std::int64_t b) __attribute__((always_inline)) {
        const T* from = values + n * at.sample_stride + b * at.block_stride;
        for_each_run(
            at.pixels, [&](std::int64_t first, std::int64_t count) __attribute__((always_inline)) {
              add_run(pixel, from + first * at.pixel_stride, at.pixel_stride, count,
                      sums + b * at.lanes, squares + b * at.lanes);
            });
      });
}

template <class T>
REGATTA_INLINE void add_gradient_sums_by_mask(const ChannelBlocks& at, const NormGradient<T>& from,
                                              const NormScale& by, double* sums, double* products) {
  if (from.mask == ReluMask::none)
    add_gradient_sums_of<ReluMask::none>(at, from, by, sums, products);
  else if (from.mask == ReluMask::output)
    add_gradient_sums_of<ReluMask::output>(at, from, by, sums, products);
  else
    add_gradient_sums_of<ReluMask::input>(at, from, by, sums, products);
}

template <class T>
REGATTA_INLINE void normalise_any(const ChannelBlocks& at, const T* input, const T* residual,
                                  T* output, const NormScale& by, bool relu) {
  if (relu && residual)
    normalise_blocks<true, true>(at, input, residual, output, by);
  else if (relu)
    normalise_blocks<true, false>(at, input, residual, output, by);
  else if (residual)
    normalise_blocks<false, true>(at, input, residual, output, by);
  else
    normalise_blocks<false, false>(at, input, residual, output, by);
}

// The clones, one for each mask and type, since clones cannot be templates: bodies are compiled
// into them for each instruction set.

REGATTA_CLONES void apply_unmasked(const ChannelBlocks& at, const NormGradient<float>& from,
                                   const NormScale& by, const NormSlope& and_by, float* input,
                                   GradientMode input_mode, float* residual,
                                   GradientMode residual_mode) {
  apply_masked<ReluMask::none>(at, from, by, and_by, input, input_mode, residual, residual_mode);
}
REGATTA_CLONES void apply_masked_by_output(const ChannelBlocks& at, const NormGradient<float>& from,
                                           const NormScale& by, const NormSlope& and_by,
                                           float* input, GradientMode input_mode, float* residual,
                                           GradientMode residual_mode) {
  apply_masked<ReluMask::output>(at, from, by, and_by, input, input_mode, residual, residual_mode);
}
REGATTA_CLONES void apply_masked_by_input(const ChannelBlocks& at, const NormGradient<float>& from,
                                          const NormScale& by, const NormSlope& and_by,
                                          float* input, GradientMode input_mode, float* residual,
                                          GradientMode residual_mode) {
  apply_masked<ReluMask::input>(at, from, by, and_by, input, input_mode, residual, residual_mode);
}
REGATTA_CLONES void add_sums_clone(const ChannelBlocks& at, const float* values, double* sums,
                                   double* squares) {
  add_sums_of(at, values, sums, squares);
}
REGATTA_CLONES void add_gradient_sums_clone(const ChannelBlocks& at,
                                            const NormGradient<float>& from, const NormScale& by,
                                            double* sums, double* products) {
  add_gradient_sums_by_mask(at, from, by, sums, products);
}
REGATTA_CLONES void normalise_clone(const ChannelBlocks& at, const float* input,
                                    const float* residual, float* output, const NormScale& by,
                                    bool relu) {
  normalise_any(at, input, residual, output, by, relu);
}

REGATTA_CLONES void apply_unmasked(const ChannelBlocks& at, const NormGradient<Bfloat16>& from,
                                   const NormScale& by, const NormSlope& and_by, Bfloat16* input,
                                   GradientMode input_mode, Bfloat16* residual,
                                   GradientMode residual_mode) {
  apply_masked<ReluMask::none>(at, from, by, and_by, input, input_mode, residual, residual_mode);
}
REGATTA_CLONES void apply_masked_by_output(const ChannelBlocks& at,
                                           const NormGradient<Bfloat16>& from, const NormScale& by,
                                           const NormSlope& and_by, Bfloat16* input,
                                           GradientMode input_mode, Bfloat16* residual,
                                           GradientMode residual_mode) {
  apply_masked<ReluMask::output>(at, from, by, and_by, input, input_mode, residual, residual_mode);
}
REGATTA_CLONES void apply_masked_by_input(const ChannelBlocks& at,
                                          const NormGradient<Bfloat16>& from, const NormScale& by,
                                          const NormSlope& and_by, Bfloat16* input,
                                          GradientMode input_mode, Bfloat16* residual,
                                          GradientMode residual_mode) {
  apply_masked<ReluMask::input>(at, from, by, and_by, input, input_mode, residual, residual_mode);
}
REGATTA_CLONES void add_sums_clone(const ChannelBlocks& at, const Bfloat16* values, double* sums,
                                   double* squares) {
  add_sums_of(at, values, sums, squares);
}
REGATTA_CLONES void add_gradient_sums_clone(const ChannelBlocks& at,
                                            const NormGradient<Bfloat16>& from, const NormScale& by,
                                            double* sums, double* products) {
  add_gradient_sums_by_mask(at, from, by, sums, products);
}
REGATTA_CLONES void normalise_clone(const ChannelBlocks& at, const Bfloat16* input,
                                    const Bfloat16* residual, Bfloat16* output, const NormScale& by,
                                    bool relu) {
  normalise_any(at, input, residual, output, by, relu);
}

}  // namespace

template <class T>
void add_sums(const ChannelBlocks& at, const T* values, double* sums, double* squares) {
  add_sums_clone(samples_as_pixels(at), values, sums, squares);
}

template <class T>
void normalise(const ChannelBlocks& at, const T* input, const std::type_identity_t<T>* residual,
               T* output, const NormScale& by, bool relu) {
  normalise_clone(at, input, residual, output, by, relu);
}

template <class T>
void add_gradient_sums(const ChannelBlocks& at, const NormGradient<T>& from, const NormScale& by,
                       double* sums, double* products) {
  add_gradient_sums_clone(samples_as_pixels(at), from, by, sums, products);
}

template <class T>
void apply_gradient(const ChannelBlocks& at, const NormGradient<T>& from, const NormScale& by,
                    const NormSlope& and_by, std::type_identity_t<T>* input_gradient,
                    GradientMode input_mode, std::type_identity_t<T>* residual_gradient,
                    GradientMode residual_mode) {
  if (from.mask == ReluMask::none)
    apply_unmasked(at, from, by, and_by, input_gradient, input_mode, residual_gradient,
                   residual_mode);
  else if (from.mask == ReluMask::output)
    apply_masked_by_output(at, from, by, and_by, input_gradient, input_mode, residual_gradient,
                           residual_mode);
  else
    apply_masked_by_input(at, from, by, and_by, input_gradient, input_mode, residual_gradient,
                          residual_mode);
}

template void add_sums(const ChannelBlocks&, const float*, double*, double*);
template void normalise(const ChannelBlocks&, const float*, const float*, float*, const NormScale&,
                        bool);
template void add_gradient_sums(const ChannelBlocks&, const NormGradient<float>&, const NormScale&,
                                double*, double*);
template void apply_gradient(const ChannelBlocks&, const NormGradient<float>&, const NormScale&,
                             const NormSlope&, float*, GradientMode, float*, GradientMode);
template void add_sums(const ChannelBlocks&, const Bfloat16*, double*, double*);
template void normalise(const ChannelBlocks&, const Bfloat16*, const Bfloat16*, Bfloat16*,
                        const NormScale&, bool);
template void add_gradient_sums(const ChannelBlocks&, const NormGradient<Bfloat16>&,
                                const NormScale&, double*, double*);
template void apply_gradient(const ChannelBlocks&, const NormGradient<Bfloat16>&, const NormScale&,
                             const NormSlope&, Bfloat16*, GradientMode, Bfloat16*, GradientMode);

}  // namespace regatta::cpu
