// A window that slides over height and width, as convolution and max pooling use it.
#pragma once

#include <cstdint>

#include "graph/op.h"
#include "regatta/layers.h"

namespace regatta {

struct Window {
  Extent kernel;
  Extent stride;
  Extent padding;

  // Where the window fits, counted in whole strides (a last partial stride is dropped).
  Extent positions(const Shape& input) const;

  // Calls visit(y, x, tap) for each input pixel under the window at output position (row, column);
  // `tap` numbers the window's own cells. Padding is skipped.
  template <class Visit>
  void for_each_pixel(const Shape& input, std::int64_t row, std::int64_t column,
                      const Visit& visit) const {
    for (std::int64_t i = 0; i < kernel.height; ++i) {
      const std::int64_t y = row * stride.height - padding.height + i;
      if (y < 0 || y >= input.height()) continue;
      for (std::int64_t j = 0; j < kernel.width; ++j) {
        const std::int64_t x = column * stride.width - padding.width + j;
        if (x >= 0 && x < input.width()) visit(y, x, i * kernel.width + j);
      }
    }
  }
};

// The node's "kernel", "stride" (default: `otherwise`, or the kernel where that is 0) and
// "padding" (default 0), unchecked.
Window window_of(const Node& node, std::int64_t otherwise);

// Throws InputError that names the node unless the window makes sense and fits its padded input.
void require_fits(const Node& node, const Window& window, const Shape& input);

}  // namespace regatta
