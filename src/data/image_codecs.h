// The two decoders behind data/image.h.
#pragma once

#include "data/image.h"

namespace regatta {

PixelSize jpeg_size(std::span<const std::byte> bytes);
void decode_jpeg(std::span<const std::byte> bytes, int channels, int eighths,
                 const PixelBox& wanted, DecodedImage& image);

PixelSize png_size(std::span<const std::byte> bytes);
void decode_png(std::span<const std::byte> bytes, int channels, DecodedImage& image);

// Pillow's weights.
inline std::uint8_t grey_of(int red, int green, int blue) {
  return static_cast<std::uint8_t>((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16);
}

}  // namespace regatta
