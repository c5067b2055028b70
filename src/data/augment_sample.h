// What augmentation does to one sample; data sets that decode images use the pieces themselves.
#pragma once

#include <cstddef>

#include "data/augment.h"
#include "data/dataset.h"
#include "data/window.h"

namespace regatta {

inline std::size_t sample_bytes(const DatasetInfo& info) {
  return static_cast<std::size_t>(info.sample.elements()) * dtype_bytes(info.dtype);
}
inline PixelSize size_of(const Shape& sample) {
  return {static_cast<int>(sample.height()), static_cast<int>(sample.width())};
}

// Cuts and resizes a stored sample of bytes, plane by plane.
void frame_sample(const Shape& stored, const std::byte* source, const Framing& framing,
                  std::byte* target);

// The padded crop, the flip and the colours, in place. A resized crop is not its business.
void augment_sample(const Augmentation& augmentation, std::uint64_t draw, const Shape& sample,
                    Dtype dtype, std::byte* pixels);

}  // namespace regatta
