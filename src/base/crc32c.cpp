#include "base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace regatta {
namespace {

// Reflected, a byte at a time.
constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78u : 0u);
    table[byte] = crc;
  }
  return table;
}

std::uint32_t by_table(std::uint32_t crc, std::string_view bytes) {
  static constexpr std::array<std::uint32_t, 256> table = make_table();
  for (const char c : bytes) crc = (crc >> 8) ^ table[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t by_instruction(std::uint32_t crc,
                                                               std::string_view bytes) {
  std::uint64_t wide = crc;
  while (bytes.size() >= 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    wide = _mm_crc32_u64(wide, word);
    bytes.remove_prefix(8);
  }
  return by_table(static_cast<std::uint32_t>(wide), bytes);
}

const auto best = __builtin_cpu_supports("sse4.2") ? by_instruction : by_table;
#else
const auto best = by_table;
#endif

}  // namespace

std::uint32_t crc32c(std::string_view bytes) { return ~best(~0u, bytes); }

}  // namespace regatta
