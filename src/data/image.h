// Decoding JPEG (libjpeg-turbo) and PNG (libpng) images from bytes. What an image is, its bytes
// tell, not its name. Orientation marks are left alone, as torchvision does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/resize.h"
#include "data/window.h"

namespace regatta {

enum class ImageKind { jpeg, png };

struct ImageHeader {
  ImageKind kind = ImageKind::jpeg;
  PixelSize size;
};

// An image beyond this is taken for a lie or an attack.
inline constexpr std::int64_t most_pixels = std::int64_t{1} << 27;

// Throws InputError that says what is wrong with the bytes, not whose they are: neither JPEG nor
// PNG, cut off, too large, or claiming more pixels than so many bytes can hold.
ImageHeader image_header(std::span<const std::byte> bytes);

// Rows [top, bottom) and columns [left, right).
struct PixelBox {
  int top = 0, left = 0, bottom = 0, right = 0;
};

// Part of an image: one byte a pixel (grey), or four (red, green, blue, nothing).
struct DecodedImage {
  PixelSize size;  // of the whole, at the scale it was decoded at
  PixelBox box;    // what is here: at least what was asked for
  int pixel_bytes = 4;
  std::vector<std::uint8_t> pixels;

  PixelView view() const {
    return {pixels.data(), box.top, box.left, pixel_bytes,
            static_cast<std::ptrdiff_t>(box.right - box.left) * pixel_bytes};
  }
};

// The image at `eighths`/8 of its size (JPEG only: fewer frequencies are transformed back), or the
// part of it that `wanted` names in pixels of that scale; an empty box is all. `channels` is 1
// or 3. Grey becomes colour and colour grey as asked; CMYK is taken as Adobe writes it; 16 bits are
// scaled to 8; palettes are looked up; opacity is dropped. Throws InputError as image_header does,
// and when data are missing or damaged. `image` keeps its memory from call to call.
void decode_image(std::span<const std::byte> bytes, int channels, int eighths,
                  const PixelBox& wanted, DecodedImage& image);

// The sample, channels x window, that `framing` makes of an image of bytes: decoded at the smallest
// scale of 1/8, 1/4, 1/2 and 1 that still has the pixels it is resized to, and no more of it than
// needed.
void decode_sample(std::span<const std::byte> bytes, const ImageHeader& header, int channels,
                   const Framing& framing, std::uint8_t* sample);

// A PNG file of a sample, channels x height x width with 1 or 3 channels: decoded, it is the sample
// again.
std::string png_of(const std::uint8_t* sample, int channels, PixelSize size);

}  // namespace regatta
