// The element types of CPU values in memory, float and Bfloat16, their conversions, and the choice
// between them by Dtype. Arithmetic is done in float.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/vector.h"
#include "base/dtype.h"
#include "base/error.h"

namespace regatta::cpu {

// The upper 16 bits of a float.
struct Bfloat16 {
  std::uint16_t bits;
};

REGATTA_INLINE float to_float(float value) { return value; }
REGATTA_INLINE float to_float(Bfloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

// Rounds to the nearest T, ties to even. A NaN stays a NaN: its quiet bit 0x40 is set, since one
// whose mantissa is zero in the upper 16 bits would become an infinity.
template <class T>
REGATTA_INLINE T from_float(float value) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return value;
  } else {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t nearest = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return {static_cast<std::uint16_t>(value != value ? (bits >> 16) | 0x40u : nearest)};
  }
}

// The values of type T behind a float pointer: operands have float pointers for values of all
// types.
template <class T>
const T* values_of(const float* values) {
  return reinterpret_cast<const T*>(values);
}
template <class T>
T* values_of(float* values) {
  return reinterpret_cast<T*>(values);
}

// Calls body.operator()<T>() with the element type T of `dtype`, and returns its result.
template <class Body>
auto with_type(Dtype dtype, const Body& body) {
  if (dtype == Dtype::f32) return body.template operator()<float>();
  if (dtype == Dtype::bf16) return body.template operator()<Bfloat16>();
  throw Error("the CPU backend computes in f32 and bf16 alone");
}

// Convert `count` values, with all threads of the calling worker's team.
void widen(const Bfloat16* from, float* to, std::size_t count);
void narrow(const float* from, Bfloat16* to, std::size_t count);

}  // namespace regatta::cpu
