// Random numbers as a pure function of (seed, stream, index): the same on any worker, in any order.
#pragma once

#include <cstdint>
#include <string_view>

namespace regatta {

// Two rounds of a 64-bit finaliser over the three coordinates.
std::uint64_t random_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t index);

// Uniform in [0, 1), 24 bits.
float random_uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t index);

// Standard normal (Box-Muller on two draws).
float random_normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index);

// A stream's number from its name (FNV-1a), so that parameters draw independently.
std::uint64_t stream_of(std::string_view name);

}  // namespace regatta
