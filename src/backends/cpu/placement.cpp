#include "backends/cpu/placement.h"

#include <algorithm>

#include "backends/cpu/bfloat16.h"
#include "backends/cpu/parallel.h"

namespace regatta::cpu {
namespace {

template <class Body>
void over_samples(const Placement& place, std::int64_t n, const Body& body) {
  parallel_for(n, place.size(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) body(i);
  });
}

}  // namespace

template <class T>
void to_planes(const Placement& place, std::int64_t n, const T* values, T* planes) {
  over_samples(place, n, [&](std::int64_t i) {
    if (place.block == 1) {
      std::copy_n(values + i * place.size(), place.size(), planes + i * place.size());
      return;
    }
    for (std::int64_t c = 0; c < place.channels; ++c) {
      const T* from = values + i * place.size() + place.base(c);
      T* to = planes + i * place.plain_size() + c * place.pixels;
      for (std::int64_t p = 0; p < place.pixels; ++p) to[p] = from[p * place.block];
    }
  });
}

template <class T>
void from_planes(const Placement& place, std::int64_t n, const T* planes, T* values,
                 GradientMode mode) {
  if (mode == GradientMode::none) return;
  if (mode == GradientMode::write) clear_padding(place, n, values);
  over_samples(place, n, [&](std::int64_t i) {
    if (place.block == 1 && mode == GradientMode::write) {
      std::copy_n(planes + i * place.size(), place.size(), values + i * place.size());
      return;
    }
    for (std::int64_t c = 0; c < place.channels; ++c) {
      const T* from = planes + i * place.plain_size() + c * place.pixels;
      T* to = values + i * place.size() + place.base(c);
      if (mode == GradientMode::write)
        for (std::int64_t p = 0; p < place.pixels; ++p) to[p * place.block] = from[p];
      else
        for (std::int64_t p = 0; p < place.pixels; ++p)
          to[p * place.block] = from_float<T>(to_float(to[p * place.block]) + to_float(from[p]));
    }
  });
}

template <class T>
void clear_padding(const Placement& place, std::int64_t n, T* values) {
  const std::int64_t used = place.channels % place.block;
  if (used == 0) return;
  over_samples(place, n, [&](std::int64_t i) {
    T* block = values + (i + 1) * place.size() - place.block * place.pixels;
    for (std::int64_t p = 0; p < place.pixels; ++p)
      std::fill(block + p * place.block + used, block + (p + 1) * place.block, T{});
  });
}

template void to_planes(const Placement&, std::int64_t, const float*, float*);
template void to_planes(const Placement&, std::int64_t, const Bfloat16*, Bfloat16*);
template void from_planes(const Placement&, std::int64_t, const float*, float*, GradientMode);
template void from_planes(const Placement&, std::int64_t, const Bfloat16*, Bfloat16*, GradientMode);
template void clear_padding(const Placement&, std::int64_t, float*);
template void clear_padding(const Placement&, std::int64_t, Bfloat16*);

}  // namespace regatta::cpu
