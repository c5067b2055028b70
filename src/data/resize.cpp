#include "data/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace regatta {
namespace {

constexpr std::int32_t half = 1 << (ResizeWeights::precision - 1);

using Lanes = std::int32_t __attribute__((vector_size(16)));  // one pixel of four bytes
using FourBytes = std::uint8_t __attribute__((vector_size(4)));

// The weights of a pixel sum to one and none is negative, so no sum leaves the range of a byte.
template <int PIXEL_BYTES>
inline __attribute__((always_inline)) void resize_row(const std::uint8_t* source, int left,
                                                      const ResizeWeights& columns,
                                                      std::uint8_t* target) {
  const int outputs = columns.outputs();
  for (int x = 0; x < outputs; ++x) {
    const ResizeWeights::Taps taps = columns.taps(x);
    const std::uint8_t* from =
        source + static_cast<std::ptrdiff_t>(taps.first - left) * PIXEL_BYTES;
    if constexpr (PIXEL_BYTES == 1) {
      std::int32_t sum = half;
      for (int i = 0; i < taps.count; ++i) sum += from[i] * taps.weights[i];
      *target++ = static_cast<std::uint8_t>(sum >> ResizeWeights::precision);
    } else {
      Lanes sum = {half, half, half, half};
      for (int i = 0; i < taps.count; ++i) {
        FourBytes pixel;
        std::memcpy(&pixel, from + i * 4, 4);
        sum += __builtin_convertvector(pixel, Lanes) * taps.weights[i];
      }
      const FourBytes pixel = __builtin_convertvector(sum >> ResizeWeights::precision, FourBytes);
      std::memcpy(target, &pixel, 4);
      target += 4;
    }
  }
}

inline __attribute__((always_inline)) void blend_rows(const std::uint8_t* first,
                                                      std::ptrdiff_t row_bytes,
                                                      const ResizeWeights::Taps& taps, int bytes,
                                                      std::uint8_t* target) {
  constexpr int block = 64;  // sums stay in registers
  for (int start = 0; start < bytes; start += block) {
    std::int32_t sums[block];
    const int count = std::min(block, bytes - start);
    if (count == block) {
      for (int i = 0; i < block; ++i) sums[i] = half;
      for (int tap = 0; tap < taps.count; ++tap) {
        const std::uint8_t* row = first + tap * row_bytes + start;
        const std::int32_t weight = taps.weights[tap];
        for (int i = 0; i < block; ++i) sums[i] += row[i] * weight;
      }
      for (int i = 0; i < block; ++i)
        target[start + i] = static_cast<std::uint8_t>(sums[i] >> ResizeWeights::precision);
    } else {
      for (int i = 0; i < count; ++i) {
        std::int32_t sum = half;
        for (int tap = 0; tap < taps.count; ++tap)
          sum += first[tap * row_bytes + start + i] * taps.weights[tap];
        target[start + i] = static_cast<std::uint8_t>(sum >> ResizeWeights::precision);
      }
    }
  }
}

inline __attribute__((always_inline)) void resize_with(const PixelView& source,
                                                       const ResizeWeights& rows,
                                                       const ResizeWeights& columns,
                                                       std::uint8_t* narrow, std::uint8_t* target) {
  const int row_bytes = columns.outputs() * source.pixel_bytes;
  for (int y = rows.first_source(); y < rows.end_source(); ++y) {
    const std::uint8_t* from = source.pixels + (y - source.top) * source.row_bytes;
    std::uint8_t* to = narrow + static_cast<std::ptrdiff_t>(y - rows.first_source()) * row_bytes;
    if (source.pixel_bytes == 1)
      resize_row<1>(from, source.left, columns, to);
    else
      resize_row<4>(from, source.left, columns, to);
  }
  for (int y = 0; y < rows.outputs(); ++y) {
    const ResizeWeights::Taps taps = rows.taps(y);
    blend_rows(narrow + static_cast<std::ptrdiff_t>(taps.first - rows.first_source()) * row_bytes,
               row_bytes, taps, row_bytes, target + static_cast<std::ptrdiff_t>(y) * row_bytes);
  }
}

using Resize = void (*)(const PixelView&, const ResizeWeights&, const ResizeWeights&, std::uint8_t*,
                        std::uint8_t*);

void resize_plain(const PixelView& source, const ResizeWeights& rows, const ResizeWeights& columns,
                  std::uint8_t* narrow, std::uint8_t* target) {
  resize_with(source, rows, columns, narrow, target);
}

#if defined(__x86_64__)
// Whole numbers: the same results, sooner.
__attribute__((target("avx2"))) void resize_avx2(const PixelView& source, const ResizeWeights& rows,
                                                 const ResizeWeights& columns, std::uint8_t* narrow,
                                                 std::uint8_t* target) {
  resize_with(source, rows, columns, narrow, target);
}

Resize best_resize() { return __builtin_cpu_supports("avx2") ? resize_avx2 : resize_plain; }
#else
Resize best_resize() { return resize_plain; }
#endif

// Pillow's rounding: a half goes up, and what is negative goes towards zero.
int rounded(double value) {
  const double above = value + 0.5;
  return static_cast<int>(above);
}

}  // namespace

ResizeWeights::ResizeWeights(const ResizeAxis& axis, int source_size) {
  const double scale = axis.size / axis.outputs;
  const double filter_scale = std::max(scale, 1.0);
  const double support = filter_scale;
  stride_ = static_cast<std::size_t>(std::ceil(support)) * 2 + 1;
  const auto count = static_cast<std::size_t>(axis.count);
  first_.resize(count);
  count_.resize(count);
  weights_.resize(count * stride_);
  first_source_ = source_size;
  std::vector<double> exact(stride_);
  for (std::size_t i = 0; i < count; ++i) {
    const double centre = axis.begin + (axis.first + static_cast<double>(i) + 0.5) * scale;
    const int first = std::max(rounded(centre - support), 0);
    const int end = std::min(rounded(centre + support), source_size);
    double sum = 0;
    for (int x = first; x < end; ++x) {
      const double distance = std::abs((x - centre + 0.5) * (1.0 / filter_scale));
      sum += exact[static_cast<std::size_t>(x - first)] = std::max(1.0 - distance, 0.0);
    }
    for (int x = 0; x < end - first; ++x)
      weights_[i * stride_ + static_cast<std::size_t>(x)] =
          rounded(exact[static_cast<std::size_t>(x)] / sum * (1 << precision));
    // A weight of nothing need not be fetched, and at the end of a view may not be.
    int used = end - first;
    while (used > 1 && weights_[i * stride_ + static_cast<std::size_t>(used) - 1] == 0) --used;
    first_[i] = first;
    count_[i] = used;
    first_source_ = std::min(first_source_, first);
    end_source_ = std::max(end_source_, first + used);
  }
}

void resize(const PixelView& source, const ResizeWeights& rows, const ResizeWeights& columns,
            std::uint8_t* target) {
  static const Resize best = best_resize();
  thread_local std::vector<std::uint8_t> narrow;
  narrow.resize(static_cast<std::size_t>(rows.end_source() - rows.first_source()) *
                static_cast<std::size_t>(columns.outputs() * source.pixel_bytes));
  best(source, rows, columns, narrow.data(), target);
}

}  // namespace regatta
