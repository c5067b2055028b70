// Random numbers as a pure function of (seed, stream, index): the same on any worker, in any order,
// on any device.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/host_device.h"

namespace regatta {

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
REGATTA_HOST_DEVICE constexpr std::uint64_t random_mix(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// What seed and stream come to, for loops over many indices.
REGATTA_HOST_DEVICE constexpr std::uint64_t random_key(std::uint64_t seed, std::uint64_t stream) {
  return random_mix(random_mix(seed) ^ stream);
}
REGATTA_HOST_DEVICE constexpr std::uint64_t keyed_bits(std::uint64_t key, std::uint64_t index) {
  return random_mix(key ^ index);
}
// Uniform in [0, 1), 24 bits.
REGATTA_HOST_DEVICE constexpr float keyed_uniform(std::uint64_t key, std::uint64_t index) {
  return static_cast<float>(keyed_bits(key, index) >> 40) * 0x1p-24f;
}

REGATTA_HOST_DEVICE constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t stream,
                                                        std::uint64_t index) {
  return keyed_bits(random_key(seed, stream), index);
}
REGATTA_HOST_DEVICE constexpr float random_uniform(std::uint64_t seed, std::uint64_t stream,
                                                   std::uint64_t index) {
  return keyed_uniform(random_key(seed, stream), index);
}

// Standard normal (Box-Muller on two draws).
float random_normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index);

// A stream's number from its name (FNV-1a), so that parameters draw independently.
std::uint64_t stream_of(std::string_view name);

}  // namespace regatta
