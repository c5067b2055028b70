// A block's channels as one vector, for loops whose conditions the compiler does not vectorise by
// itself. Wider than the processor's registers is fine: the compiler cuts them.
#pragma once

#include <cstdint>
#include <cstring>

#include "backends/cpu/vector.h"

namespace regatta::cpu {

template <int LANES>
struct Lanes;
template <>
struct Lanes<8> {
  using Floats = float __attribute__((vector_size(32)));
  using Words = std::int32_t __attribute__((vector_size(32)));
  using Bytes = std::uint8_t __attribute__((vector_size(8)));
  using Halves = std::uint16_t __attribute__((vector_size(16)));
  using Unsigned = std::uint32_t __attribute__((vector_size(32)));
};
template <>
struct Lanes<16> {
  using Floats = float __attribute__((vector_size(64)));
  using Words = std::int32_t __attribute__((vector_size(64)));
  using Bytes = std::uint8_t __attribute__((vector_size(16)));
  using Halves = std::uint16_t __attribute__((vector_size(32)));
  using Unsigned = std::uint32_t __attribute__((vector_size(64)));
};

// By reference: how vectors are passed by value depends on the instruction set.
template <class Vector, class T>
REGATTA_INLINE void load(Vector& vector, const T* from) {
  std::memcpy(&vector, from, sizeof vector);
}
template <class Vector, class T>
REGATTA_INLINE void store(const Vector& vector, T* to) {
  std::memcpy(to, &vector, sizeof vector);
}

// Between bf16 in memory and float in registers, rounded as from_float does it.
template <int LANES>
REGATTA_INLINE void widen_lanes(const typename Lanes<LANES>::Halves& halves,
                                typename Lanes<LANES>::Floats& floats) {
  const auto words = __builtin_convertvector(halves, typename Lanes<LANES>::Unsigned) << 16;
  std::memcpy(&floats, &words, sizeof floats);
}
template <int LANES>
REGATTA_INLINE void narrow_lanes(const typename Lanes<LANES>::Floats& floats,
                                 typename Lanes<LANES>::Halves& halves) {
  using Words = typename Lanes<LANES>::Unsigned;
  Words bits;
  std::memcpy(&bits, &floats, sizeof bits);
  const Words upper = bits >> 16, nearest = (bits + 0x7fffu + (upper & 1u)) >> 16;
  const Words rounded = floats != floats ? upper | 0x40u : nearest;
  halves = __builtin_convertvector(rounded, typename Lanes<LANES>::Halves);
}

}  // namespace regatta::cpu
