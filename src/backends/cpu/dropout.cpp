// Dropout: what is kept is drawn anew in each pass, many channels at a time.
#include "ops/dropout.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/elementwise.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/placement.h"
#include "backends/cpu/vector.h"

namespace regatta::cpu {
namespace {

struct Draw {
  std::uint64_t key, first, stride;  // the index of lane l is first + l * stride
  std::uint32_t threshold;           // of 2^24: dropout_keeps, in whole numbers
  float scale;
};

// Pixels and lanes as one loop, which is vectorised.
template <int LANES, bool ADD>
REGATTA_INLINE void scale_lanes(const Draw& draw, const float* from, float* to,
                                std::int64_t pixels) {
  const Draw d = draw;
  for (std::int64_t i = 0; i < pixels * LANES; ++i) {
    const std::uint64_t lane = static_cast<std::uint64_t>(i) % LANES;
    const std::uint64_t pixel = static_cast<std::uint64_t>(i) / LANES;
    const auto bits =
        static_cast<std::uint32_t>(keyed_bits(d.key, d.first + lane * d.stride + pixel) >> 40);
    // A product, so that a NaN is not dropped unseen.
    const float value = from[i] * (bits >= d.threshold ? d.scale : 0.0f);
    to[i] = ADD ? to[i] + value : value;
  }
}

template <bool ADD>
REGATTA_INLINE void scale_any(const Draw& draw, std::int64_t lanes, const float* from, float* to,
                              std::int64_t pixels) {
  if (lanes == 16)
    scale_lanes<16, ADD>(draw, from, to, pixels);
  else if (lanes == 8)
    scale_lanes<8, ADD>(draw, from, to, pixels);
  else
    scale_lanes<1, ADD>(draw, from, to, pixels);
}

REGATTA_CLONES void scale_kept(const Draw& draw, std::int64_t lanes, const float* from, float* to,
                               std::int64_t pixels) {
  scale_any<false>(draw, lanes, from, to, pixels);
}

REGATTA_CLONES void add_kept(const Draw& draw, std::int64_t lanes, const float* from, float* to,
                             std::int64_t pixels) {
  scale_any<true>(draw, lanes, from, to, pixels);
}

class Dropout : public Kernel {
 public:
  explicit Dropout(const Site& site)
      : n_(site.n), place_(site.node.shape, site.layout()), draw_(dropout_draw(site.node)) {}

  void run(Work work, const Operands& o, std::byte*) override {
    if (work == Work::forward && o.pass == Pass::evaluate) {
      std::copy_n(o.inputs[0], n_ * place_.size(), o.output);
      return;
    }
    const GradientMode mode = work == Work::forward ? GradientMode::write : o.gradient_modes[0];
    if (mode == GradientMode::none) return;
    const float* from = work == Work::forward ? o.inputs[0] : o.output_gradient;
    float* to = work == Work::forward ? o.output : o.input_gradients[0];
    const Draw first{.key = dropout_key(o.seed, draw_.stream, o.step),
                     .first = 0,
                     .stride = static_cast<std::uint64_t>(place_.pixels),
                     .threshold = static_cast<std::uint32_t>(std::ceil(draw_.probability * 0x1p24)),
                     .scale = draw_.scale};
    // Vectors are one plane of their features.
    const std::int64_t block = place_.block;
    const std::int64_t planes = block == 1 ? 1 : place_.padded / block;
    const std::int64_t pixels = block == 1 ? place_.size() : place_.pixels;
    parallel_for(n_ * planes, block * pixels, [&](std::int64_t begin, std::int64_t end) {
      Draw draw = first;
      for (std::int64_t plane = begin; plane < end; ++plane) {
        const std::int64_t i = plane / planes, b = plane % planes;
        draw.first = static_cast<std::uint64_t>((o.first_sample + i) * place_.plain_size() +
                                                b * block * pixels);
        const std::int64_t at = i * place_.size() + b * block * pixels;
        if (mode == GradientMode::write)
          scale_kept(draw, block, from + at, to + at, pixels);
        else
          add_kept(draw, block, from + at, to + at, pixels);
      }
    });
  }

 private:
  std::int64_t n_;
  Placement place_;
  DropoutDraw draw_;
};

}  // namespace

std::unique_ptr<Kernel> make_dropout(const Site& site) { return std::make_unique<Dropout>(site); }

}  // namespace regatta::cpu
