// Element types on the device: loads and stores of up to 16 bytes at once, arithmetic in float, and
// the one place that turns a Dtype into a type.
#pragma once

#include <cuda_bf16.h>

#include <algorithm>
#include <cstdint>

#include "base/dtype.h"
#include "base/error.h"

namespace regatta::cuda {

using bf16 = __nv_bfloat16;

// Elements of T that one thread moves with one instruction.
template <class T>
constexpr int lanes = static_cast<int>(16 / sizeof(T));

template <class T, int V>
struct alignas(std::min<std::size_t>(16, sizeof(T) * V)) Pack {
  T values[V];
};

template <int V, class T>
__device__ Pack<T, V> load(const T* from) {
  return *reinterpret_cast<const Pack<T, V>*>(from);
}

template <class T, int V>
__device__ void store(T* to, const Pack<T, V>& pack) {
  *reinterpret_cast<Pack<T, V>*>(to) = pack;
}

__device__ inline float to_float(float value) { return value; }
__device__ inline float to_float(bf16 value) { return __bfloat162float(value); }

// max(value, 0), but a NaN stays one, so that a loss that has become one shows it.
__device__ inline float rectified(float value) { return value < 0 ? 0.0f : value; }

template <class T>
__device__ T from_float(float value) {
  if constexpr (sizeof(T) == 2)
    return __float2bfloat16_rn(value);
  else
    return value;
}

template <class Body>
void with_type(Dtype dtype, const Body& body) {
  if (dtype == Dtype::f32)
    body.template operator()<float>();
  else if (dtype == Dtype::bf16)
    body.template operator()<bf16>();
  else
    throw Error("the CUDA backend computes in f32 and bf16 alone");
}

// The pairs that occur: an operator's input and its output, which differ only where bf16 ends in
// fp32 logits.
template <class Body>
void with_types(Dtype input, Dtype output, const Body& body) {
  with_type(input, [&]<class In>() {
    with_type(output, [&]<class Out>() {
      if constexpr (sizeof(In) <= sizeof(Out))
        body.template operator()<In, Out>();
      else
        throw Error("the CUDA backend never narrows fp32 logits to bf16");
    });
  });
}

}  // namespace regatta::cuda
