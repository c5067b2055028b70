// Max pooling of planes by halves: eight outputs of a row at a time. As in a thin convolution, the
// last vector of a row overlaps the one before it.
#include <algorithm>
#include <cmath>

#include "backends/cpu/kernel.h"
#include "backends/cpu/lanes.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/vector.h"

namespace regatta::cpu {
namespace {

constexpr std::int64_t lanes = 8;
using Floats = Lanes<8>::Floats;
using Words = Lanes<8>::Words;
using Bytes = Lanes<8>::Bytes;
using Pairs = Lanes<16>::Floats;

struct Form {
  std::int64_t in_height, in_width, height, width;
};

// A larger value wins, and a NaN over all; of equals the first.
REGATTA_INLINE void compete(const Floats& value, std::int32_t place, Floats& best, Words& winner) {
  const Words wins = (value > best) | (value != value);
  best = wins ? value : best;
  winner = wins ? Words{} + place : winner;
}

// One plane; `winners` may be null.
REGATTA_CLONES void pool_plane(const Form& f, const float* in, float* out, std::uint8_t* winners) {
  for (std::int64_t y = 0; y < f.height; ++y)
    for (std::int64_t next = 0; next < f.width; next += lanes) {
      const std::int64_t x = std::min(next, f.width - lanes);
      const float* from = in + 2 * y * f.in_width + 2 * x;
      Pairs upper, lower;
      load(upper, from);
      load(lower, from + f.in_width);
      Floats best = __builtin_shufflevector(upper, upper, 0, 2, 4, 6, 8, 10, 12, 14);
      Words winner{};
      compete(__builtin_shufflevector(upper, upper, 1, 3, 5, 7, 9, 11, 13, 15), 1, best, winner);
      compete(__builtin_shufflevector(lower, lower, 0, 2, 4, 6, 8, 10, 12, 14), 2, best, winner);
      compete(__builtin_shufflevector(lower, lower, 1, 3, 5, 7, 9, 11, 13, 15), 3, best, winner);
      store(best, out + y * f.width + x);
      if (winners) store(__builtin_convertvector(winner, Bytes), winners + y * f.width + x);
    }
}

// Hands one plane's gradients to the winners, zeros to the others. Rows and columns that no window
// covers are the caller's.
REGATTA_CLONES void spread_plane(const Form& f, const float* gradient, const std::uint8_t* winners,
                                 float* in_gradient) {
  for (std::int64_t y = 0; y < f.height; ++y)
    for (std::int64_t next = 0; next < f.width; next += lanes) {
      const std::int64_t x = std::min(next, f.width - lanes);
      Floats given;
      Bytes places;
      load(given, gradient + y * f.width + x);
      load(places, winners + y * f.width + x);
      const Words winner = __builtin_convertvector(places, Words);
      const Floats a = winner == 0 ? given : Floats{}, b = winner == 1 ? given : Floats{},
                   c = winner == 2 ? given : Floats{}, d = winner == 3 ? given : Floats{};
      const Pairs upper =
          __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
      const Pairs lower =
          __builtin_shufflevector(c, d, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
      float* to = in_gradient + 2 * y * f.in_width + 2 * x;
      store(upper, to);
      store(lower, to + f.in_width);
    }
}

class HalvingPool : public Kernel {
 public:
  explicit HalvingPool(const Site& site) : planes_(site.n * site.node.shape.channels()) {
    const Shape &in = site.input(0).shape, &out = site.node.shape;
    form_ = {in.height(), in.width(), out.height(), out.width()};
  }

  void run(Work work, const Operands& o, std::byte*) override {
    const GradientMode mode = o.gradient_modes[0];
    if (work != Work::forward && mode == GradientMode::none) return;
    const std::int64_t in = form_.in_height * form_.in_width, out = form_.height * form_.width;
    auto* winners = reinterpret_cast<std::uint8_t*>(o.stash);
    parallel_for(planes_, in, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t p = begin; p < end; ++p)
        if (work == Work::forward)
          pool_plane(form_, o.inputs[0] + p * in, o.output + p * out,
                     winners ? winners + p * out : nullptr);
        else if (mode == GradientMode::write)
          write_back(o.output_gradient + p * out, winners + p * out, o.input_gradients[0] + p * in);
        else
          add_back(o.output_gradient + p * out, winners + p * out, o.input_gradients[0] + p * in);
    });
  }

 private:
  void write_back(const float* gradient, const std::uint8_t* winners, float* to) const {
    if (2 * form_.width < form_.in_width || 2 * form_.height < form_.in_height)
      std::fill_n(to, form_.in_height * form_.in_width, 0.0f);
    spread_plane(form_, gradient, winners, to);
  }

  void add_back(const float* gradient, const std::uint8_t* winners, float* to) const {
    for (std::int64_t y = 0; y < form_.height; ++y)
      for (std::int64_t x = 0; x < form_.width; ++x, ++gradient, ++winners)
        to[(2 * y + *winners / 2) * form_.in_width + 2 * x + *winners % 2] += *gradient;
  }

  std::int64_t planes_;
  Form form_{};
};

}  // namespace

std::unique_ptr<Kernel> make_halving_pool(const Site& site) {
  return std::make_unique<HalvingPool>(site);
}

}  // namespace regatta::cpu
