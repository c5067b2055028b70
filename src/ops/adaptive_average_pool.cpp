// The mean over bins that share the image out evenly, whatever its size. Attributes: "output"
// (height and width). As in PyTorch, bin i of m covers pixels floor(i n / m) to ceil((i + 1) n / m)
// of n, so neighbours may overlap, and an output larger than its input repeats pixels.
#include "ops/bins.h"
#include "ops/check.h"
#include "ops/ops.h"

namespace regatta {
namespace {

Shape infer(const Node& node, Shapes inputs) {
  const Shape& input = require_image(node, inputs);
  const auto [height, width] = node.attributes.pair("output", 0);
  if (height < 1 || width < 1)
    fail(node, "it needs 'output' of at least 1x1, found " + std::to_string(height) + "x" +
                   std::to_string(width));
  return {input.channels(), height, width};
}

// Bins overlap by little: each input is added about once.
Cost cost(const Node& node, Shapes inputs) {
  const double elements = static_cast<double>(inputs[0].elements() + node.shape.elements());
  return {.forward_flops = elements, .backward_flops = elements};
}

std::vector<Bin> bins_along(std::int64_t extent, std::int64_t count) {
  std::vector<Bin> bins;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t begin = i * extent / count;
    const std::int64_t end = ((i + 1) * extent + count - 1) / count;
    bins.push_back({begin, end, end - begin});
  }
  return bins;
}

template <class T>
void forward(const ReferenceCall<T>& call) {
  average_forward(call, adaptive_average_pool_bins(*call.node, call.shapes[0]));
}

template <class T>
void backward(const ReferenceCall<T>& call) {
  average_backward(call, adaptive_average_pool_bins(*call.node, call.shapes[0]));
}

}  // namespace

Bins adaptive_average_pool_bins(const Node& node, const Shape& input) {
  return {bins_along(input.height(), node.shape.height()),
          bins_along(input.width(), node.shape.width())};
}

const OpDef adaptive_average_pool_op{
    .name = "adaptive_average_pool",
    .infer = infer,
    .cost = cost,
    .forward = forward<float>,
    .backward = backward<float>,
    .forward_double = forward<double>,
    .backward_double = backward<double>,
};

}  // namespace regatta
