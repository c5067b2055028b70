// Resizing of 8-bit images exactly as Pillow's resize with BILINEAR does it, which torchvision uses
// for images: a triangle as wide as two output pixels (or two source pixels when enlarging), so
// that shrinking averages what it leaves out. Rows first, then columns; both round to bytes;
// weights have 22 fractional bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace regatta {

// Along one axis: [begin, begin + size) of the source becomes `outputs` pixels, of which `count`
// are made, from `first` on.
struct ResizeAxis {
  double begin = 0, size = 0;
  int outputs = 0;
  int first = 0, count = 0;

  bool operator==(const ResizeAxis&) const = default;
};

// Which source pixels make an output pixel, and how much each counts.
class ResizeWeights {
 public:
  static constexpr int precision = 22;

  ResizeWeights(const ResizeAxis& axis, int source_size);

  // The source pixels that are needed at all: [first_source(), end_source()).
  int first_source() const { return first_source_; }
  int end_source() const { return end_source_; }

  struct Taps {
    int first, count;
    const std::int32_t* weights;
  };
  Taps taps(int output) const {  // from 0, for the first one made
    const auto i = static_cast<std::size_t>(output);
    return {first_[i], count_[i], weights_.data() + i * stride_};
  }
  int outputs() const { return static_cast<int>(first_.size()); }

 private:
  std::vector<int> first_, count_;
  std::vector<std::int32_t> weights_;
  std::size_t stride_ = 0;
  int first_source_ = 0, end_source_ = 0;
};

// A part of a source image in memory. Pixels are one byte, or four of which the last says nothing.
struct PixelView {
  const std::uint8_t* pixels = nullptr;  // of the pixel at (top, left)
  int top = 0, left = 0;
  int pixel_bytes = 1;
  std::ptrdiff_t row_bytes = 0;
};

// Writes rows.outputs() x columns.outputs() pixels of as many bytes, without gaps. The view has
// what both need.
void resize(const PixelView& source, const ResizeWeights& rows, const ResizeWeights& columns,
            std::uint8_t* target);

}  // namespace regatta
