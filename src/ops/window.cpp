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

Extent padded(const Window& window, const Shape& input) {
  return {input.height() + 2 * window.padding.height, input.width() + 2 * window.padding.width};
}

}  // namespace

Extent Window::positions(const Shape& input) const {
  const Extent room = padded(*this, input);
  return {(room.height - kernel.height) / stride.height + 1,
          (room.width - kernel.width) / stride.width + 1};
}

Window window_of(const Node& node, std::int64_t otherwise) {
  const Extent kernel = extent_of(node, "kernel", 0);
  const Extent stride = extent_of(node, "stride", otherwise == 0 ? kernel : Extent(otherwise));
  return {kernel, stride, extent_of(node, "padding", 0)};
}

void require_fits(const Node& node, const Window& window, const Shape& input) {
  const auto require_at_least = [&](const char* name, Extent extent, std::int64_t least) {
    if (extent.height < least || extent.width < least)
      fail(node, std::string(name) + " " + extent.text() + " is below " + Extent(least).text());
  };
  require_at_least("kernel", window.kernel, 1);
  require_at_least("stride", window.stride, 1);
  require_at_least("padding", window.padding, 0);
  const Extent room = padded(window, input);
  if (window.kernel.height > room.height || window.kernel.width > room.width)
    fail(node,
         "kernel " + window.kernel.text() + " is larger than its padded input " + room.text());
}

}  // namespace regatta
