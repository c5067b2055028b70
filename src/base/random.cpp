#include "base/random.h"

#include <cmath>
#include <numbers>

namespace regatta {

float random_normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  const std::uint64_t bits = random_bits(seed, stream, index);
  // The first draw is in (0, 1], so that its logarithm is finite.
  const double first = (static_cast<double>(bits >> 32) + 1.0) * 0x1p-32;
  const double second = static_cast<double>(bits & 0xffffffffu) * 0x1p-32;
  return static_cast<float>(std::sqrt(-2.0 * std::log(first)) *
                            std::cos(2.0 * std::numbers::pi * second));
}

std::uint64_t stream_of(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace regatta
