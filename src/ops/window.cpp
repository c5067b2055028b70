#include "ops/window.h"

#include <string>

#include "ops/check.h"

namespace regatta {
namespace {

Extent extent_of(const Node& node, const std::string& name, Extent otherwise) {
  if (!node.attributes.has(name)) return otherwise;
  const auto [height, width] = node.attributes.pair(name, -1);
  return {height, width};
}

Padding padding_of(const Node& node) {
  if (!node.attributes.has("padding")) return 0;
  const std::vector<std::int64_t> given = node.attributes.list("padding");
  switch (given.size()) {
    case 1:
      return given[0];
    case 2:
      return {given[0], given[1]};
    case 4:
      return {given[0], given[1], given[2], given[3]};
    default:
      fail(node, "'padding' takes 1, 2 or 4 numbers, found " + std::to_string(given.size()));
  }
}

std::string padding_text(const Window& window) {
  const Extent before = window.padding, after = window.padding_after;
  if (before.height == after.height && before.width == after.width) return before.text();
  return before.text() + " before and " + after.text() + " after";
}

Extent padded(const Window& window, const Shape& input) {
  return {input.height() + window.padding.height + window.padding_after.height,
          input.width() + window.padding.width + window.padding_after.width};
}

std::int64_t positions_along(std::int64_t extent, std::int64_t before, std::int64_t after,
                             std::int64_t span, std::int64_t stride, bool ceil) {
  const std::int64_t room = extent + before + after - span;
  if (!ceil) return room / stride + 1;
  const std::int64_t count = (room + stride - 1) / stride + 1;
  return (count - 1) * stride >= extent + before ? count - 1 : count;
}

// Whether each of `count` windows has a cell on the image.
bool each_sees_a_pixel(std::int64_t count, std::int64_t extent, std::int64_t before,
                       std::int64_t kernel, std::int64_t stride, std::int64_t dilation) {
  for (std::int64_t i = 0; i < count; ++i) {
    bool seen = false;
    for (std::int64_t k = 0; k < kernel && !seen; ++k) {
      const std::int64_t at = i * stride - before + k * dilation;
      seen = at >= 0 && at < extent;
    }
    if (!seen) return false;
  }
  return true;
}

}  // namespace

Extent Window::positions(const Shape& input) const {
  return {positions_along(input.height(), padding.height, padding_after.height, span().height,
                          stride.height, ceil),
          positions_along(input.width(), padding.width, padding_after.width, span().width,
                          stride.width, ceil)};
}

Window window_of(const Node& node, std::int64_t otherwise) {
  const Extent kernel = extent_of(node, "kernel", 0);
  const Extent stride = extent_of(node, "stride", otherwise == 0 ? kernel : Extent(otherwise));
  const Padding padding = padding_of(node);
  return {.kernel = kernel,
          .stride = stride,
          .padding = {padding.top, padding.left},
          .padding_after = {padding.bottom, padding.right},
          .dilation = extent_of(node, "dilation", 1),
          .ceil = node.attributes.flag("ceil")};
}

void require_fits(const Node& node, const Window& window, const Shape& input) {
  const auto require_at_least = [&](const char* name, Extent extent, std::int64_t least) {
    if (extent.height < least || extent.width < least)
      fail(node, std::string(name) + " " + extent.text() + " is below " + Extent(least).text());
  };
  require_at_least("kernel", window.kernel, 1);
  require_at_least("stride", window.stride, 1);
  require_at_least("padding", window.padding, 0);
  require_at_least("padding", window.padding_after, 0);
  require_at_least("dilation", window.dilation, 1);
  const Extent room = padded(window, input), span = window.span();
  if (span.height <= room.height && span.width <= room.width) return;
  const bool dilated = window.dilation.area() > 1;
  fail(node, "kernel " + window.kernel.text() +
                 (dilated ? " with dilation " + window.dilation.text() : "") +
                 " is larger than its padded input " + room.text());
}

void require_pools(const Node& node, const Window& window, const Shape& input) {
  require_fits(node, window, input);
  const auto too_wide = [&](Extent padding) {
    return 2 * padding.height > window.kernel.height || 2 * padding.width > window.kernel.width;
  };
  if (too_wide(window.padding) || too_wide(window.padding_after))
    fail(node, "padding " + padding_text(window) + " is more than half its kernel " +
                   window.kernel.text());
  const Extent count = window.positions(input);
  if (!each_sees_a_pixel(count.height, input.height(), window.padding.height, window.kernel.height,
                         window.stride.height, window.dilation.height) ||
      !each_sees_a_pixel(count.width, input.width(), window.padding.width, window.kernel.width,
                         window.stride.width, window.dilation.width))
    fail(node, "with dilation " + window.dilation.text() + " and padding " + padding_text(window) +
                   " a window sees nothing of its input " + input.text());
}

}  // namespace regatta
