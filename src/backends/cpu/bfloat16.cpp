#include "backends/cpu/bfloat16.h"

#include "backends/cpu/parallel.h"

namespace regatta::cpu {
namespace {

REGATTA_CLONES void widen_range(const Bfloat16* from, float* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = to_float(from[i]);
}

REGATTA_CLONES void narrow_range(const float* from, Bfloat16* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = from_float<Bfloat16>(from[i]);
}

}  // namespace

void widen(const Bfloat16* from, float* to, std::size_t count) {
  parallel_for(static_cast<std::int64_t>(count), 1, [&](std::int64_t begin, std::int64_t end) {
    widen_range(from + begin, to + begin, end - begin);
  });
}

void narrow(const float* from, Bfloat16* to, std::size_t count) {
  parallel_for(static_cast<std::int64_t>(count), 1, [&](std::int64_t begin, std::int64_t end) {
    narrow_range(from + begin, to + begin, end - begin);
  });
}

}  // namespace regatta::cpu
