#include "base/shape.h"

#include <charconv>

#include "base/error.h"

namespace regatta {

Shape::Shape(std::initializer_list<std::int64_t> extents)
    : Shape(std::span<const std::int64_t>(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const std::int64_t> extents) : rank_(static_cast<int>(extents.size())) {
  if (extents.size() > max_rank) throw Error("a shape has at most four extents");
  for (std::size_t i = 0; i < extents.size(); ++i) extents_[i] = extents[i];
}

Shape Shape::parse(std::string_view text) {
  const auto fail = [&]() -> Shape {
    throw InputError("shape '" + std::string(text) +
                     "': expected positive whole numbers joined by x, such as 3x32x32");
  };
  std::array<std::int64_t, max_rank> extents{};
  std::size_t rank = 0;
  double elements = 1;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find('x', begin), text.size());
    std::int64_t extent = 0;
    const auto [stop, code] = std::from_chars(text.data() + begin, text.data() + end, extent);
    const bool whole = code == std::errc{} && stop == text.data() + end;
    if (!whole || extent <= 0 || rank == max_rank) return fail();
    extents[rank++] = extent;
    // No tensor here comes near this many elements, and no product of sizes may overflow.
    elements *= static_cast<double>(extent);
    if (elements > 1e12) return fail();
    begin = end + 1;
  }
  return Shape(std::span<const std::int64_t>(extents.data(), rank));
}

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t extent : extents()) product *= extent;
  return product;
}

std::string Shape::text() const {
  std::string out;
  for (const std::int64_t extent : extents()) {
    if (!out.empty()) out += 'x';
    out += std::to_string(extent);
  }
  return out;
}

namespace {
constexpr std::array<std::string_view, 4> layout_names{"nchw", "nhwc", "blocked8", "blocked16"};
}

std::string_view layout_name(Layout layout) {
  return layout_names[static_cast<std::size_t>(layout)];
}

Layout layout_named(std::string_view name) {
  for (std::size_t i = 0; i < layout_names.size(); ++i)
    if (layout_names[i] == name) return static_cast<Layout>(i);
  throw InputError("layout '" + std::string(name) +
                   "' is unknown: use nchw, nhwc, blocked8 or blocked16");
}

std::int64_t channel_block(Layout layout) {
  switch (layout) {
    case Layout::blocked8:
      return 8;
    case Layout::blocked16:
      return 16;
    default:
      return 1;
  }
}

std::int64_t padded_elements(const Shape& sample, Layout layout) {
  const std::int64_t block = channel_block(layout);
  if (block == 1 || sample.rank() != 3) return sample.elements();
  const std::int64_t blocks = (sample.channels() + block - 1) / block;
  return blocks * block * sample.height() * sample.width();
}

}  // namespace regatta
