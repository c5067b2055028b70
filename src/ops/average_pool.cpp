// The mean under a sliding window. Attributes: "kernel", "stride" (the kernel), "padding" (0, at
// most half the kernel), "ceil" (0), "count_padding" (1: zeros of the padding count as values; what
// a window of `ceil` reaches beyond the padding never does).
#include <algorithm>

#include "ops/bins.h"
#include "ops/check.h"
#include "ops/ops.h"
#include "ops/window.h"

namespace regatta {
namespace {

Shape infer(const Node& node, Shapes inputs) {
  const Shape& input = require_image(node, inputs);
  const Window window = window_of(node, 0);
  if (window.dilation.area() != 1) fail(node, "an average has no dilation");
  require_pools(node, window, input);
  const Extent positions = window.positions(input);
  return {input.channels(), positions.height, positions.width};
}

Cost cost(const Node& node, Shapes) {
  const double elements = static_cast<double>(node.shape.elements());
  const double area = static_cast<double>(window_of(node, 0).kernel.area());
  return {.forward_flops = elements * area, .backward_flops = elements * area};
}

std::vector<Bin> bins_along(std::int64_t positions, std::int64_t extent, std::int64_t before,
                            std::int64_t after, std::int64_t kernel, std::int64_t stride,
                            bool count_padding) {
  std::vector<Bin> bins;
  for (std::int64_t i = 0; i < positions; ++i) {
    const std::int64_t begin = i * stride - before;
    const std::int64_t end = std::min(begin + kernel, extent + after);
    const std::int64_t first = std::max<std::int64_t>(begin, 0), last = std::min(end, extent);
    bins.push_back({first, last, count_padding ? end - begin : last - first});
  }
  return bins;
}

template <class T>
void forward(const ReferenceCall<T>& call) {
  average_forward(call, average_pool_bins(*call.node, call.shapes[0]));
}

template <class T>
void backward(const ReferenceCall<T>& call) {
  average_backward(call, average_pool_bins(*call.node, call.shapes[0]));
}

}  // namespace

Bins average_pool_bins(const Node& node, const Shape& input) {
  const Window w = window_of(node, 0);
  const Extent positions = w.positions(input);
  const bool count = node.attributes.integer("count_padding", 1) != 0;
  return {bins_along(positions.height, input.height(), w.padding.height, w.padding_after.height,
                     w.kernel.height, w.stride.height, count),
          bins_along(positions.width, input.width(), w.padding.width, w.padding_after.width,
                     w.kernel.width, w.stride.width, count)};
}

const OpDef average_pool_op{
    .name = "average_pool",
    .infer = infer,
    .cost = cost,
    .forward = forward<float>,
    .backward = backward<float>,
    .forward_double = forward<double>,
    .backward_double = backward<double>,
};

}  // namespace regatta
