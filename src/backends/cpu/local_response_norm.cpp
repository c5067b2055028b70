// Local response norm, pixel by pixel: a pixel's channels are gathered into one row, over which the
// neighbourhood slides.
#include <algorithm>
#include <cmath>

#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/placement.h"
#include "backends/cpu/vector.h"

namespace regatta::cpu {
namespace {

// to[c] = sum of from[c - before] to from[c + after]; `from` has that many zeros around it.
REGATTA_CLONES void slide(const float* from, float* to, std::int64_t channels, std::int64_t before,
                          std::int64_t after) {
  for (std::int64_t c = 0; c < channels; ++c) to[c] = from[c - before];
  for (std::int64_t k = 1 - before; k <= after; ++k)
    for (std::int64_t c = 0; c < channels; ++c) to[c] += from[c + k];
}

// base ^ -beta; the usual exponent by square roots, which vectors have.
REGATTA_CLONES void powers(const float* base, float* power, std::int64_t channels, float beta) {
  if (beta == 0.75f) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const float root = std::sqrt(base[c]);
      power[c] = 1.0f / (root * std::sqrt(root));
    }
  } else {
    for (std::int64_t c = 0; c < channels; ++c) power[c] = std::pow(base[c], -beta);
  }
}

class LocalResponseNorm : public Kernel {
 public:
  explicit LocalResponseNorm(const Site& site)
      : n_(site.n),
        place_(site.node.shape, site.layout()),
        size_(site.node.attributes.integer("size", 5)),
        share_(static_cast<float>(site.node.attributes.real("alpha", 1e-4) /
                                  static_cast<double>(size_))),
        beta_(static_cast<float>(site.node.attributes.real("beta", 0.75))),
        k_(static_cast<float>(site.node.attributes.real("k", 1))),
        parts_(parts_of(n_ * place_.pixels, place_.channels)) {}

  std::size_t scratch_bytes() const override {
    return static_cast<std::size_t>(parts_ * rows * row()) * sizeof(float);
  }

  void run(Work work, const Operands& o, std::byte* scratch) override {
    if (work != Work::forward && o.gradient_modes[0] == GradientMode::none) return;
    float* to = work == Work::forward ? o.output : o.input_gradients[0];
    const bool add = work != Work::forward && o.gradient_modes[0] == GradientMode::add;
    const std::int64_t all = n_ * place_.pixels;
    parallel_parts(parts_, [&](int part) {
      float* data = reinterpret_cast<float*>(scratch) + part * rows * row();
      std::fill_n(data, rows * row(), 0.0f);
      for (std::int64_t each = all * part / parts_; each < all * (part + 1) / parts_; ++each) {
        const std::int64_t at =
            each / place_.pixels * place_.size() + each % place_.pixels * place_.block;
        const float* result = work == Work::forward
                                  ? forward(o.inputs[0] + at, data)
                                  : backward(o.inputs[0] + at, o.output_gradient + at, data);
        for (std::int64_t c = 0; c < place_.channels; ++c) {
          float& slot = to[at + place_.base(c)];
          slot = add ? slot + result[c] : result[c];
        }
      }
    });
    if (!add) clear_padding(place_, n_, to);
  }

 private:
  static constexpr std::int64_t rows = 6;
  // Zeros around the channels, as far as the neighbourhood reaches.
  std::int64_t row() const { return place_.channels + 2 * size_; }
  float* inside(float* data, std::int64_t number) const { return data + number * row() + size_; }

  void gather(const float* pixel, float* values) const {
    for (std::int64_t c = 0; c < place_.channels; ++c) values[c] = pixel[place_.base(c)];
  }

  // Leaves x, its divisor's base and that to the power of -beta in the first rows.
  void divisors(const float* pixel, float* data) const {
    float *x = inside(data, 0), *base = inside(data, 1), *power = inside(data, 2),
          *squares = inside(data, 3);
    gather(pixel, x);
    for (std::int64_t c = 0; c < place_.channels; ++c) squares[c] = x[c] * x[c];
    slide(squares, base, place_.channels, size_ / 2, (size_ - 1) / 2);
    for (std::int64_t c = 0; c < place_.channels; ++c) base[c] = k_ + share_ * base[c];
    powers(base, power, place_.channels, beta_);
  }

  const float* forward(const float* pixel, float* data) const {
    divisors(pixel, data);
    float *x = inside(data, 0), *power = inside(data, 2);
    for (std::int64_t c = 0; c < place_.channels; ++c) x[c] *= power[c];
    return x;
  }

  const float* backward(const float* pixel, const float* gradient_pixel, float* data) const {
    divisors(pixel, data);
    float *x = inside(data, 0), *base = inside(data, 1), *power = inside(data, 2),
          *through = inside(data, 4), *gradient = inside(data, 5);
    gather(gradient_pixel, gradient);
    for (std::int64_t c = 0; c < place_.channels; ++c)
      through[c] = gradient[c] * x[c] * power[c] / base[c];
    // A channel is in the neighbourhoods of those around it, with before and after exchanged.
    slide(through, base, place_.channels, (size_ - 1) / 2, size_ / 2);
    const float factor = 2.0f * beta_ * share_;
    for (std::int64_t c = 0; c < place_.channels; ++c)
      gradient[c] = gradient[c] * power[c] - factor * x[c] * base[c];
    return gradient;
  }

  std::int64_t n_;
  Placement place_;
  std::int64_t size_;
  float share_, beta_, k_;
  int parts_;
};

}  // namespace

std::unique_ptr<Kernel> make_local_response_norm(const Site& site) {
  return std::make_unique<LocalResponseNorm>(site);
}

}  // namespace regatta::cpu
