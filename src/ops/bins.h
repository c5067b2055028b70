// Averages over bins: average pooling and adaptive pooling differ only in where their bins begin
// and end.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/op.h"

namespace regatta {

// A stretch of pixels along one axis, and what it counts as: more than it holds where zeros of the
// padding count too.
struct Bin {
  std::int64_t begin = 0, end = 0, count = 0;
};

// The bins of an output: pixel (row, column) is the sum over rows[row] x columns[column], divided
// by the product of their counts.
struct Bins {
  std::vector<Bin> rows, columns;
};

// For a node of average_pool or adaptive_average_pool.
Bins average_pool_bins(const Node& node, const Shape& input);
Bins adaptive_average_pool_bins(const Node& node, const Shape& input);

// Calls visit(output pixel, input pixel, share of the input pixel) in the order of outputs.
template <class Visit>
void for_each_share(const Bins& bins, std::int64_t input_width, const Visit& visit) {
  std::int64_t out = 0;
  for (const Bin& row : bins.rows)
    for (const Bin& column : bins.columns) {
      const double share = 1.0 / static_cast<double>(row.count * column.count);
      for (std::int64_t y = row.begin; y < row.end; ++y)
        for (std::int64_t x = column.begin; x < column.end; ++x)
          visit(out, y * input_width + x, share);
      ++out;
    }
}

template <class T>
void average_forward(const ReferenceCall<T>& call, const Bins& bins) {
  const std::int64_t in_pixels = call.shapes[0].height() * call.shapes[0].width();
  const std::int64_t out_pixels = call.node->shape.height() * call.node->shape.width();
  for (std::int64_t plane = 0; plane < call.n * call.node->shape.channels(); ++plane) {
    std::vector<double> sums(static_cast<std::size_t>(out_pixels));
    for_each_share(bins, call.shapes[0].width(),
                   [&](std::int64_t out, std::int64_t in, double share) {
                     sums[static_cast<std::size_t>(out)] +=
                         share * static_cast<double>(call.inputs[0][plane * in_pixels + in]);
                   });
    for (std::int64_t i = 0; i < out_pixels; ++i)
      call.output[plane * out_pixels + i] = static_cast<T>(sums[static_cast<std::size_t>(i)]);
  }
}

template <class T>
void average_backward(const ReferenceCall<T>& call, const Bins& bins) {
  if (!call.input_gradients[0]) return;
  const std::int64_t in_pixels = call.shapes[0].height() * call.shapes[0].width();
  const std::int64_t out_pixels = call.node->shape.height() * call.node->shape.width();
  for (std::int64_t plane = 0; plane < call.n * call.node->shape.channels(); ++plane) {
    std::vector<double> sums(static_cast<std::size_t>(in_pixels));
    for_each_share(
        bins, call.shapes[0].width(), [&](std::int64_t out, std::int64_t in, double share) {
          sums[static_cast<std::size_t>(in)] +=
              share * static_cast<double>(call.output_gradient[plane * out_pixels + out]);
        });
    for (std::int64_t i = 0; i < in_pixels; ++i)
      call.input_gradients[0][plane * in_pixels + i] +=
          static_cast<T>(sums[static_cast<std::size_t>(i)]);
  }
}

}  // namespace regatta
