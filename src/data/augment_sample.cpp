#include "data/augment_sample.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "base/random.h"
#include "data/colour.h"

namespace regatta {
namespace {

// Every use of a draw has a stream of its own.
std::uint64_t bits_for(std::uint64_t draw, const char* use) {
  return random_bits(draw, stream_of(use), 0);
}
double uniform_for(std::uint64_t draw, const char* use, double least, double most) {
  return least + (most - least) * static_cast<double>(bits_for(draw, use) >> 11) * 0x1p-53;
}

// Moves the image up by `down` rows and left by `right` columns (either may be negative); what
// comes in is black.
void shift(const Shape& sample, std::size_t element, std::int64_t down, std::int64_t right,
           std::byte* pixels) {
  const std::int64_t height = sample.height(), width = sample.width();
  const std::size_t row_bytes = static_cast<std::size_t>(width) * element;
  thread_local std::vector<std::byte> copy;
  copy.resize(static_cast<std::size_t>(height) * row_bytes);
  const std::int64_t first = std::max<std::int64_t>(0, -right);
  const std::int64_t count = std::max<std::int64_t>(0, width - std::abs(right));
  for (std::int64_t c = 0; c < sample.channels(); ++c, pixels += copy.size()) {
    std::memcpy(copy.data(), pixels, copy.size());
    std::memset(pixels, 0, copy.size());
    for (std::int64_t y = 0; y < height; ++y) {
      const std::int64_t from = y + down;
      if (from < 0 || from >= height || count == 0) continue;
      std::memcpy(pixels + static_cast<std::size_t>(y) * row_bytes +
                      static_cast<std::size_t>(first) * element,
                  copy.data() + static_cast<std::size_t>(from) * row_bytes +
                      static_cast<std::size_t>(first + right) * element,
                  static_cast<std::size_t>(count) * element);
    }
  }
}

template <class Element>
void flip(const Shape& sample, std::byte* pixels) {
  auto* row = reinterpret_cast<Element*>(pixels);
  const std::int64_t width = sample.width();
  for (std::int64_t i = 0; i < sample.channels() * sample.height(); ++i, row += width)
    std::reverse(row, row + width);
}

void jitter(const Augmentation& augmentation, std::uint64_t draw, const Shape& sample,
            std::uint8_t* pixels) {
  const auto factor = [&](const char* use, double range) {
    return uniform_for(draw, use, std::max(0.0, 1.0 - range), 1.0 + range);
  };
  // In a random order: Fisher and Yates on four, from one number below 4!.
  std::array<int, 4> order{0, 1, 2, 3};
  std::uint64_t which = bits_for(draw, "colour order") % 24;
  for (std::size_t last = 3; last > 0; which /= last + 1, --last)
    std::swap(order[last], order[which % (last + 1)]);
  for (const int change : order) {
    if (change == 0 && augmentation.brightness > 0)
      adjust_brightness(sample, factor("brightness", augmentation.brightness), pixels);
    if (change == 1 && augmentation.contrast > 0)
      adjust_contrast(sample, factor("contrast", augmentation.contrast), pixels);
    if (change == 2 && augmentation.saturation > 0)
      adjust_saturation(sample, factor("saturation", augmentation.saturation), pixels);
    if (change == 3 && augmentation.hue > 0)
      adjust_hue(sample, uniform_for(draw, "hue", -augmentation.hue, augmentation.hue), pixels);
  }
}

}  // namespace

void frame_sample(const Shape& stored, const std::byte* source, const Framing& framing,
                  std::byte* target) {
  const PixelSize size = size_of(stored);
  // Whatever lies outside the box must not shine in: the box is the whole source.
  const ResizeAxis rows{0, static_cast<double>(framing.box.height), framing.resized.height,
                        framing.window_top, framing.window.height};
  const ResizeAxis columns{0, static_cast<double>(framing.box.width), framing.resized.width,
                           framing.window_left, framing.window.width};
  const ResizeWeights row_weights(rows, framing.box.height);
  const ResizeWeights column_weights(columns, framing.box.width);
  const std::size_t plane =
      static_cast<std::size_t>(size.height) * static_cast<std::size_t>(size.width);
  const std::size_t out_plane = static_cast<std::size_t>(framing.window.height) *
                                static_cast<std::size_t>(framing.window.width);
  for (std::int64_t c = 0; c < stored.channels(); ++c) {
    const auto* first =
        reinterpret_cast<const std::uint8_t*>(source) + static_cast<std::size_t>(c) * plane +
        static_cast<std::size_t>(framing.top) * static_cast<std::size_t>(size.width) +
        static_cast<std::size_t>(framing.left);
    resize({first, 0, 0, 1, size.width}, row_weights, column_weights,
           reinterpret_cast<std::uint8_t*>(target) + static_cast<std::size_t>(c) * out_plane);
  }
}

void augment_sample(const Augmentation& augmentation, std::uint64_t draw, const Shape& sample,
                    Dtype dtype, std::byte* pixels) {
  if (augmentation.crop_padding > 0) {
    const auto places = 2 * static_cast<std::uint64_t>(augmentation.crop_padding) + 1;
    const auto offset = [&](const char* use) {
      return static_cast<std::int64_t>(bits_for(draw, use) % places) - augmentation.crop_padding;
    };
    shift(sample, dtype_bytes(dtype), offset("crop row"), offset("crop column"), pixels);
  }
  if (augmentation.flip && bits_for(draw, "flip") >> 63 != 0) {
    if (dtype == Dtype::u8)
      flip<std::uint8_t>(sample, pixels);
    else
      flip<float>(sample, pixels);
  }
  if (augmentation.jitters())
    jitter(augmentation, draw, sample, reinterpret_cast<std::uint8_t*>(pixels));
}

}  // namespace regatta
