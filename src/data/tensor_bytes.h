// How many bytes a tensor takes, for files whose headers may lie about it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/dtype.h"

namespace regatta {

// Empty when an extent is negative or the product does not fit: no real file holds such a tensor.
inline std::optional<std::size_t> tensor_bytes(std::span<const std::int64_t> shape,
                                               std::size_t element_bytes) {
  std::size_t bytes = element_bytes;
  for (const std::int64_t extent : shape)
    if (extent < 0 || __builtin_mul_overflow(bytes, static_cast<std::size_t>(extent), &bytes))
      return std::nullopt;
  return bytes;
}

inline std::optional<std::size_t> tensor_bytes(std::span<const std::int64_t> shape, Dtype dtype) {
  return tensor_bytes(shape, dtype_bytes(dtype));
}

}  // namespace regatta
