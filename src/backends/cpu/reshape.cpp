// Kernels that move values between layouts: the input, flatten, and the global average.
#include <algorithm>
#include <cstring>

#include "backends/cpu/bfloat16.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/placement.h"
#include "backends/cpu/vector.h"

namespace regatta::cpu {
namespace {

template <class Stored, class T>
REGATTA_INLINE void convert(const Stored* source, T* target, std::int64_t pixels, std::int64_t step,
                            float factor, float offset) {
  for (std::int64_t p = 0; p < pixels; ++p)
    target[p * step] = from_float<T>(static_cast<float>(source[p]) * factor + offset);
}

template <class T>
REGATTA_INLINE void convert_any_step(const std::uint8_t* source, T* target, std::int64_t pixels,
                                     std::int64_t step, float factor, float offset) {
  if (step == 1)
    convert(source, target, pixels, 1, factor, offset);
  else
    convert(source, target, pixels, step, factor, offset);
}

REGATTA_CLONES void convert_bytes(const std::uint8_t* source, float* target, std::int64_t pixels,
                                  std::int64_t step, float factor, float offset) {
  convert_any_step(source, target, pixels, step, factor, offset);
}
REGATTA_CLONES void convert_bytes(const std::uint8_t* source, Bfloat16* target, std::int64_t pixels,
                                  std::int64_t step, float factor, float offset) {
  convert_any_step(source, target, pixels, step, factor, offset);
}

template <class T>
class Input : public Kernel {
 public:
  explicit Input(const Site& site)
      : n_(site.n),
        place_(site.node.shape, site.layout()),
        bytes_(site.sample_dtype == Dtype::u8),
        normalisation_(site.normalisation) {}

  void run(Work, const Operands& o, std::byte*) override {
    const std::int64_t stored = place_.channels * place_.pixels;
    const std::int64_t placed = place_.padded * place_.pixels;
    parallel_for(n_, placed, [&](std::int64_t begin, std::int64_t end) {
      T* output = values_of<T>(o.output);
      if (placed != stored) std::fill_n(output + begin * placed, (end - begin) * placed, T{});
      for (std::int64_t i = begin; i < end; ++i)
        for (std::int64_t c = 0; c < place_.channels; ++c) {
          const auto channel = static_cast<std::size_t>(c);
          const float deviation = normalisation_.deviation[channel];
          const float factor = normalisation_.scale / deviation;
          const float offset = -normalisation_.mean[channel] / deviation;
          const std::int64_t from = i * stored + c * place_.pixels;
          T* target = output + i * placed + place_.base(c);
          if (bytes_)
            convert_bytes(reinterpret_cast<const std::uint8_t*>(o.samples) + from, target,
                          place_.pixels, place_.block, factor, offset);
          else
            convert(reinterpret_cast<const float*>(o.samples) + from, target, place_.pixels,
                    place_.block, factor, offset);
        }
    });
  }

 private:
  std::int64_t n_;
  Placement place_;
  bool bytes_;
  Normalisation normalisation_;
};

template <class T>
class Flatten : public Kernel {
 public:
  explicit Flatten(const Site& site)
      : n_(site.n), place_(site.input(0).shape, site.input_layout(0)) {}

  void run(Work work, const Operands& o, std::byte*) override {
    if (work == Work::forward)
      to_planes(place_, n_, values_of<T>(o.inputs[0]), values_of<T>(o.output));
    else
      from_planes(place_, n_, values_of<T>(o.output_gradient), values_of<T>(o.input_gradients[0]),
                  o.gradient_modes[0]);
  }

 private:
  std::int64_t n_;
  Placement place_;
};

class GlobalAveragePool : public Kernel {
 public:
  explicit GlobalAveragePool(const Site& site)
      : n_(site.n),
        in_(site.input(0).shape, site.input_layout(0)),
        out_(site.node.shape, site.layout()) {}

  void run(Work work, const Operands& o, std::byte*) override {
    const GradientMode mode = o.gradient_modes[0];
    if (work != Work::forward && mode == GradientMode::none) return;
    const std::int64_t in_size = in_.padded * in_.pixels;
    const std::int64_t out_size = out_.padded * out_.pixels;
    if (work == Work::forward && out_.padded != out_.channels)
      std::memset(o.output, 0, sizeof(float) * std::size_t(out_size * n_));
    const float share = 1.0f / static_cast<float>(in_.pixels);
    parallel_for(n_, in_size, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        for (std::int64_t c = 0; c < in_.padded; ++c) {
          const std::int64_t at = i * in_size + in_.base(c);
          const bool real = c < in_.channels;
          if (work == Work::forward) {
            if (!real) continue;
            double sum = 0;
            for (std::int64_t p = 0; p < in_.pixels; ++p) sum += o.inputs[0][at + p * in_.block];
            o.output[i * out_size + out_.base(c)] =
                static_cast<float>(sum / static_cast<double>(in_.pixels));
            continue;
          }
          const float gradient =
              real ? o.output_gradient[i * out_size + out_.base(c)] * share : 0.0f;
          float* target = o.input_gradients[0] + at;
          for (std::int64_t p = 0; p < in_.pixels; ++p)
            target[p * in_.block] =
                mode == GradientMode::add ? target[p * in_.block] + gradient : gradient;
        }
    });
  }

 private:
  std::int64_t n_;
  Placement in_, out_;
};

}  // namespace

std::unique_ptr<Kernel> make_input(const Site& site) {
  return with_type(site.dtype(), [&]<class T>() -> std::unique_ptr<Kernel> {
    return std::make_unique<Input<T>>(site);
  });
}
std::unique_ptr<Kernel> make_flatten(const Site& site) {
  return with_type(site.dtype(), [&]<class T>() -> std::unique_ptr<Kernel> {
    return std::make_unique<Flatten<T>>(site);
  });
}
std::unique_ptr<Kernel> make_global_average_pool(const Site& site) {
  return std::make_unique<GlobalAveragePool>(site);
}

}  // namespace regatta::cpu
