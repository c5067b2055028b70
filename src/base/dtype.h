// Element types of stored tensors.
#pragma once

#include <cstddef>
#include <cstdint>

namespace regatta {

enum class Dtype : std::uint8_t { u8, i32, i64, bf16, f32, f64 };

constexpr std::size_t dtype_bytes(Dtype dtype) {
  switch (dtype) {
    case Dtype::u8:
      return 1;
    case Dtype::bf16:
      return 2;
    case Dtype::i32:
    case Dtype::f32:
      return 4;
    case Dtype::i64:
    case Dtype::f64:
      return 8;
  }
  return 0;
}

}  // namespace regatta
