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
};
template <>
struct Lanes<16> {
  using Floats = float __attribute__((vector_size(64)));
  using Words = std::int32_t __attribute__((vector_size(64)));
  using Bytes = std::uint8_t __attribute__((vector_size(16)));
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

}  // namespace regatta::cpu
