// A window that slides over height and width, as convolution and pooling use it.
#pragma once

#include <cstdint>

#include "graph/op.h"
#include "regatta/layers.h"

namespace regatta {

struct Window {
  Extent kernel;
  Extent stride;
  Extent padding;        // above and left of the image
  Extent padding_after;  // below and right of it
  Extent dilation = 1;   // from one cell of the window to the next
  bool ceil = false;     // a last window may reach beyond the padding, if it starts before it

  // What the window spans, from its first cell to its last.
  Extent span() const {
    return {(kernel.height - 1) * dilation.height + 1, (kernel.width - 1) * dilation.width + 1};
  }

  // Where the window fits, counted in whole strides: a last partial stride is dropped, or with
  // `ceil` taken unless it starts in the padding after the image (PyTorch's rule).
  Extent positions(const Shape& input) const;

  // Calls visit(y, x, tap) for each input pixel under the window at output position (row, column);
  // `tap` numbers the window's own cells. Padding is skipped.
  template <class Visit>
  void for_each_pixel(const Shape& input, std::int64_t row, std::int64_t column,
                      const Visit& visit) const {
    for (std::int64_t i = 0; i < kernel.height; ++i) {
      const std::int64_t y = row * stride.height - padding.height + i * dilation.height;
      if (y < 0 || y >= input.height()) continue;
      for (std::int64_t j = 0; j < kernel.width; ++j) {
        const std::int64_t x = column * stride.width - padding.width + j * dilation.width;
        if (x >= 0 && x < input.width()) visit(y, x, i * kernel.width + j);
      }
    }
  }
};

// The node's "kernel", "stride" (default: `otherwise`, or the kernel where that is 0), "padding"
// (default 0; one number, height and width, or top, left, bottom and right), "dilation" (1) and
// "ceil" (0). Throws InputError that names the node if the padding is none of these.
Window window_of(const Node& node, std::int64_t otherwise);

// Throws InputError that names the node unless the window makes sense and fits its padded input.
void require_fits(const Node& node, const Window& window, const Shape& input);

// What pooling asks besides: no window may see nothing but padding.
void require_pools(const Node& node, const Window& window, const Shape& input);

}  // namespace regatta
