// CRC-32C (Castagnoli): the checksum of TFRecord files, and of our own.
#pragma once

#include <cstdint>
#include <string_view>

namespace regatta {

std::uint32_t crc32c(std::string_view bytes);

// TFRecord rotates and offsets its checksums, so that a record inside a record is no trap.
inline std::uint32_t masked_crc32c(std::string_view bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

}  // namespace regatta
