#include "data/image.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "data/image_codecs.h"
#include "data/load_clock.h"

namespace regatta {
namespace {

constexpr std::uint8_t jpeg_magic[]{0xff, 0xd8, 0xff};
constexpr std::uint8_t png_magic[]{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

template <std::size_t N>
bool starts_with(std::span<const std::byte> bytes, const std::uint8_t (&magic)[N]) {
  return bytes.size() >= N && std::memcmp(bytes.data(), magic, N) == 0;
}

ImageKind kind_of(std::span<const std::byte> bytes) {
  if (starts_with(bytes, jpeg_magic)) return ImageKind::jpeg;
  if (starts_with(bytes, png_magic)) return ImageKind::png;
  throw InputError(bytes.empty() ? "it is empty" : "it is neither a JPEG nor a PNG image");
}

// A JPEG spends at least a bit on each 8x8 block of brightness, a PNG at least a byte on 1032 of
// what it holds. A header that claims more is refused before memory is made for it.
void require_plausible(const ImageHeader& header, std::size_t bytes) {
  const std::int64_t pixels = std::int64_t{header.size.height} * header.size.width;
  const std::string claim =
      "it claims " + std::to_string(header.size.width) + "x" + std::to_string(header.size.height);
  if (pixels < 1) throw InputError(claim + " pixels");
  if (pixels > most_pixels)
    throw InputError(claim + " pixels; at most " + std::to_string(most_pixels) + " are read");
  const std::int64_t pixels_per_byte = header.kind == ImageKind::jpeg ? 8 * 64 : 8 * 1032;
  if (pixels / pixels_per_byte > static_cast<std::int64_t>(bytes))
    throw InputError(claim + " pixels, which " + std::to_string(bytes) + " bytes cannot hold");
}

// The smallest scale at which a side of `from` pixels still has `to`.
int eighths_for(int from, int to) {
  for (const int eighths : {1, 2, 4})
    if (std::int64_t{from} * eighths >= std::int64_t{to} * 8) return eighths;
  return 8;
}

void spread(const std::uint8_t* pixels, std::size_t count, int channels, int pixel_bytes,
            std::uint8_t* sample) {
  if (pixel_bytes == 1) {
    std::memcpy(sample, pixels, count);
    return;
  }
  for (int c = 0; c < channels; ++c)
    for (std::size_t i = 0; i < count; ++i) *sample++ = pixels[i * 4 + static_cast<std::size_t>(c)];
}

void decode_as(ImageKind kind, std::span<const std::byte> bytes, int channels, int eighths,
               const PixelBox& wanted, DecodedImage& image) {
  if (channels != 1 && channels != 3) throw Error("images have 1 or 3 channels");
  if (kind == ImageKind::jpeg)
    decode_jpeg(bytes, channels, eighths, wanted, image);
  else
    decode_png(bytes, channels, image);
}

}  // namespace

ImageHeader image_header(std::span<const std::byte> bytes) {
  ImageHeader header;
  header.kind = kind_of(bytes);
  header.size = header.kind == ImageKind::jpeg ? jpeg_size(bytes) : png_size(bytes);
  require_plausible(header, bytes.size());
  return header;
}

void decode_image(std::span<const std::byte> bytes, int channels, int eighths,
                  const PixelBox& wanted, DecodedImage& image) {
  decode_as(image_header(bytes).kind, bytes, channels, eighths, wanted, image);
}

void decode_sample(std::span<const std::byte> bytes, const ImageHeader& header, int channels,
                   const Framing& framing, std::uint8_t* sample) {
  const int eighths = header.kind == ImageKind::png
                          ? 8
                          : std::max(eighths_for(framing.box.height, framing.resized.height),
                                     eighths_for(framing.box.width, framing.resized.width));
  // At a reduced scale the last row and column may stand for less than a whole pixel.
  const auto scaled = [&](int size) { return (size * eighths + 7) / 8; };
  ResizeAxis rows = framing.rows(eighths), columns = framing.columns(eighths);
  // Nothing outside the box shines in: weights see a source that begins and ends with it.
  const int top = static_cast<int>(rows.begin), left = static_cast<int>(columns.begin);
  rows.begin -= top;
  columns.begin -= left;
  const auto end_of = [&](const ResizeAxis& axis, int first, int size) {
    return std::min(static_cast<int>(std::ceil(axis.begin + axis.size)), scaled(size) - first);
  };
  const ResizeWeights row_weights(rows, end_of(rows, top, header.size.height));
  const ResizeWeights column_weights(columns, end_of(columns, left, header.size.width));
  const PixelBox wanted{top + row_weights.first_source(), left + column_weights.first_source(),
                        top + row_weights.end_source(), left + column_weights.end_source()};
  thread_local DecodedImage image;
  decode_as(header.kind, bytes, channels, eighths, wanted, image);
  if (image.box.top > wanted.top || image.box.left > wanted.left ||
      image.box.bottom < wanted.bottom || image.box.right < wanted.right)
    throw InputError("its size is not what its header claims");

  const LoadClock transforms(&LoadingTimes::transforms);
  PixelView view = image.view();
  view.top -= top;
  view.left -= left;
  const std::size_t count = static_cast<std::size_t>(framing.window.height) *
                            static_cast<std::size_t>(framing.window.width);
  thread_local std::vector<std::uint8_t> resized;
  resized.resize(count * static_cast<std::size_t>(view.pixel_bytes));
  resize(view, row_weights, column_weights, resized.data());
  spread(resized.data(), count, channels, view.pixel_bytes, sample);
}

}  // namespace regatta
