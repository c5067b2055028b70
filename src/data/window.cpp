#include "data/window.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace regatta {
namespace {

// Half of `room`; a half pixel goes to the even side, as Python's round has it.
int middle(int room) {
  const int half = room / 2;
  return room % 2 == 0 || half % 2 == 0 ? half : half + 1;
}

ResizeAxis axis(int begin, int size, int outputs, int first, int count, int eighths) {
  return {begin * eighths / 8.0, size * eighths / 8.0, outputs, first, count};
}

int rounded(double value) { return static_cast<int>(std::nearbyint(value)); }

}  // namespace

ResizeAxis Framing::rows(int eighths) const {
  return axis(top, box.height, resized.height, window_top, window.height, eighths);
}
ResizeAxis Framing::columns(int eighths) const {
  return axis(left, box.width, resized.width, window_left, window.width, eighths);
}

Framing evaluation_framing(PixelSize image, PixelSize target, int resize_to) {
  Framing framing;
  framing.box = framing.resized = image;
  framing.window = target;
  if (image == target) return framing;
  // The size the resized image covers, at least.
  const int shorter = std::min(target.height, target.width);
  const auto cover = [&](int side) {
    return resize_to > 0 ? rounded(static_cast<double>(side) * resize_to / shorter)
                         : rounded(side * 256.0 / 224.0);
  };
  const PixelSize covered{cover(target.height), cover(target.width)};
  const auto grown = [](int size, int other, int by) {
    return static_cast<int>(static_cast<std::int64_t>(size) * other / by);
  };
  if (std::int64_t{covered.height} * image.width >= std::int64_t{covered.width} * image.height) {
    framing.resized = {covered.height, grown(covered.height, image.width, image.height)};
  } else {
    framing.resized = {grown(covered.width, image.height, image.width), covered.width};
  }
  framing.window_top = middle(framing.resized.height - target.height);
  framing.window_left = middle(framing.resized.width - target.width);
  return framing;
}

Framing resized_crop_framing(PixelSize image, const Augmentation::ResizedCrop& crop,
                             std::uint64_t draw) {
  static const std::uint64_t stream = stream_of("resized crop");
  std::uint64_t next = 0;
  const auto uniform = [&](double least, double most) {
    return least +
           (most - least) * static_cast<double>(random_bits(draw, stream, next++) >> 11) * 0x1p-53;
  };
  const auto below = [&](int end) {
    return static_cast<int>(random_bits(draw, stream, next++) % static_cast<std::uint64_t>(end));
  };
  Framing framing;
  framing.resized = framing.window = {crop.height, crop.width};
  const double area = static_cast<double>(image.height) * image.width;
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target_area = area * uniform(crop.least_area, crop.most_area);
    const double ratio = std::exp(uniform(std::log(crop.least_ratio), std::log(crop.most_ratio)));
    const int width = rounded(std::sqrt(target_area * ratio));
    const int height = rounded(std::sqrt(target_area / ratio));
    if (width < 1 || width > image.width || height < 1 || height > image.height) continue;
    framing.box = {height, width};
    framing.top = below(image.height - height + 1);
    framing.left = below(image.width - width + 1);
    return framing;
  }
  const double ratio = static_cast<double>(image.width) / image.height;
  framing.box = image;
  if (ratio < crop.least_ratio)
    framing.box.height = std::max(rounded(image.width / crop.least_ratio), 1);
  else if (ratio > crop.most_ratio)
    framing.box.width = std::max(rounded(image.height * crop.most_ratio), 1);
  framing.top = (image.height - framing.box.height) / 2;
  framing.left = (image.width - framing.box.width) / 2;
  return framing;
}

}  // namespace regatta
