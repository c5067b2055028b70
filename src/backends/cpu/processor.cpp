#include "backends/cpu/processor.h"

#include <cpuid.h>

namespace regatta::cpu {

bool announces_amx_without_tiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & (1u << 24))) return false;
  if (!__get_cpuid_count(0x1d, 1, &a, &b, &c, &d)) return true;
  return (a | b | c) == 0;
}

bool multiplies_bf16() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned avx512f = 1u << 16, amx_bf16 = 1u << 22, avx512_bf16 = 1u << 5;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & avx512f)) return false;
  if ((d & amx_bf16) && !announces_amx_without_tiles()) return true;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & avx512_bf16);
}

}  // namespace regatta::cpu
