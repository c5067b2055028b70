#include "train/mixup.h"

#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "base/random.h"

namespace regatta {
namespace {

// Numbers of one stream, one after another.
class Draws {
 public:
  Draws(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}

  // Between 0 and 1, never either.
  double uniform() {
    return (static_cast<double>(random_bits(seed_, stream_, next_++) >> 11) + 0.5) * 0x1p-53;
  }

  double normal() {
    const double first = uniform(), second = uniform();
    return std::sqrt(-2 * std::log(first)) * std::cos(2 * std::numbers::pi * second);
  }

  // Marsaglia and Tsang 2000; below 1 by way of the next larger shape.
  double gamma(double shape) {
    if (shape < 1) {
      const double larger = gamma(shape + 1);
      return larger * std::pow(uniform(), 1 / shape);
    }
    const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
    while (true) {
      const double x = normal();
      const double v = std::pow(1 + c * x, 3);
      const double u = uniform();
      if (v > 0 && std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
    }
  }

 private:
  std::uint64_t seed_, stream_, next_ = 0;
};

}  // namespace

Mixing mixing_of(double alpha, std::uint64_t seed, std::uint64_t batch, std::int64_t count) {
  Draws draws(seed, stream_of("mixup share") ^ batch);
  const double one = draws.gamma(alpha), two = draws.gamma(alpha);
  Mixing mixing;
  // A tiny alpha may round both to nothing: then nothing is mixed.
  mixing.share = one + two > 0 ? static_cast<float>(two / (one + two)) : 0.0f;
  mixing.partners.resize(static_cast<std::size_t>(count));
  std::iota(mixing.partners.begin(), mixing.partners.end(), std::int64_t{0});
  const std::uint64_t stream = stream_of("mixup partner") ^ batch;
  for (std::size_t last = mixing.partners.size(); last-- > 1;)
    std::swap(mixing.partners[last], mixing.partners[random_bits(seed, stream, last) % (last + 1)]);
  return mixing;
}

}  // namespace regatta
