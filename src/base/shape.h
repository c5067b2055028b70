// The extent of one sample (3x32x32), of a parameter (64x3x7x7), and how samples lie in memory.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace regatta {

// Up to four extents, all positive. Samples are C x H x W or a plain vector; the batch is not part.
class Shape {
 public:
  static constexpr int max_rank = 4;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents);
  explicit Shape(std::span<const std::int64_t> extents);

  // "3x32x32" -> Shape{3, 32, 32}; throws InputError that quotes `text`.
  static Shape parse(std::string_view text);

  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const { return extents_[static_cast<std::size_t>(axis)]; }
  std::span<const std::int64_t> extents() const { return {extents_.data(), std::size_t(rank_)}; }
  std::int64_t elements() const;  // 1 for rank 0

  // Views of a sample as channels x height x width; a vector has height and width 1.
  std::int64_t channels() const { return rank_ > 0 ? extents_[0] : 1; }
  std::int64_t height() const { return rank_ == 3 ? extents_[1] : 1; }
  std::int64_t width() const { return rank_ == 3 ? extents_[2] : 1; }

  std::string text() const;  // "3x32x32"
  bool operator==(const Shape&) const = default;

 private:
  std::array<std::int64_t, max_rank> extents_{};
  int rank_ = 0;
};

// How a batch of samples lies in memory. Blocked layouts keep 8 or 16 channels innermost, padded
// with zeros to a whole block: what oneDNN's vector kernels want.
enum class Layout { nchw, nhwc, blocked8, blocked16 };

std::string_view layout_name(Layout layout);
Layout layout_named(std::string_view name);  // throws InputError

// Channels innermost in a block: 8 or 16 for blocked layouts, 1 otherwise.
std::int64_t channel_block(Layout layout);

// Elements one sample occupies, padding included.
std::int64_t padded_elements(const Shape& sample, Layout layout);

}  // namespace regatta
