// bfloat16 in memory, float in registers: the element types of CPU values, and the one place that
// turns a Dtype into a type.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/vector.h"
#include "base/dtype.h"
#include "base/error.h"

namespace regatta::cpu {

// The upper half of a float.
struct Bfloat16 {
  std::uint16_t bits;
};

REGATTA_INLINE float to_float(float value) { return value; }
REGATTA_INLINE float to_float(Bfloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

// The nearest T, the even one of two equally near. A NaN stays a NaN: the added bit keeps one whose
// lower half alone was set from becoming infinite.
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

// Operands carry values of any type as floats.
template <class T>
const T* values_of(const float* values) {
  return reinterpret_cast<const T*>(values);
}
template <class T>
T* values_of(float* values) {
  return reinterpret_cast<T*>(values);
}

// What body.operator()<T>() returns, T being the type of the Dtype.
template <class Body>
auto with_type(Dtype dtype, const Body& body) {
  if (dtype == Dtype::f32) return body.template operator()<float>();
  if (dtype == Dtype::bf16) return body.template operator()<Bfloat16>();
  throw Error("the CPU backend computes in f32 and bf16 alone");
}

// Between both, by all threads of the team.
void widen(const Bfloat16* from, float* to, std::size_t count);
void narrow(const float* from, Bfloat16* to, std::size_t count);

}  // namespace regatta::cpu
