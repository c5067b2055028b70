// The largest value under a sliding window. Padding never wins, and of equals the first does, as in
// PyTorch; a NaN wins over all. Attributes: "kernel", "stride" (the kernel), "padding" (0, at most
// half the kernel), "dilation" (1), "ceil" (0).
#include <cmath>

#include "ops/check.h"
#include "ops/ops.h"
#include "ops/window.h"

namespace regatta {
namespace {

Window pool_window(const Node& node) { return window_of(node, 0); }

Shape infer(const Node& node, Shapes inputs) {
  const Shape& input = require_image(node, inputs);
  const Window window = pool_window(node);
  require_pools(node, window, input);
  const Extent positions = window.positions(input);
  return {input.channels(), positions.height, positions.width};
}

// One comparison for each value under the window; backward hands each gradient to one winner.
Cost cost(const Node& node, Shapes) {
  const double elements = static_cast<double>(node.shape.elements());
  const double area = static_cast<double>(pool_window(node).kernel.area());
  return {.forward_flops = elements * area, .backward_flops = elements};
}

// The winner's place in its window: one byte holds it unless the window is huge.
std::int64_t stash_bytes(const Node& node, std::int64_t elements) {
  return elements * (pool_window(node).kernel.area() <= 255 ? 1 : 4);
}

// Calls visit(output index, index of the input that wins there). The reference finds the winners
// again in backward instead of keeping them.
template <class T, class Visit>
void for_each_winner(const ReferenceCall<T>& call, const Visit& visit) {
  const Shape& in = call.shapes[0];
  const Shape& out = call.node->shape;
  const Window window = pool_window(*call.node);
  std::int64_t out_index = 0;
  for (std::int64_t image = 0; image < call.n * in.channels(); ++image)
    for (std::int64_t row = 0; row < out.height(); ++row)
      for (std::int64_t column = 0; column < out.width(); ++column, ++out_index) {
        std::int64_t winner = -1;
        window.for_each_pixel(in, row, column, [&](std::int64_t y, std::int64_t x, std::int64_t) {
          const std::int64_t index = (image * in.height() + y) * in.width() + x;
          const T value = call.inputs[0][index];
          if (winner < 0 || value > call.inputs[0][winner] || std::isnan(value)) winner = index;
        });
        visit(out_index, winner);
      }
}

template <class T>
void forward(const ReferenceCall<T>& call) {
  for_each_winner(call, [&](std::int64_t out, std::int64_t winner) {
    call.output[out] = call.inputs[0][winner];
  });
}

template <class T>
void backward(const ReferenceCall<T>& call) {
  if (!call.input_gradients[0]) return;
  for_each_winner(call, [&](std::int64_t out, std::int64_t winner) {
    call.input_gradients[0][winner] += call.output_gradient[out];
  });
}

}  // namespace

const OpDef max_pool_op{
    .name = "max_pool",
    .infer = infer,
    .cost = cost,
    .stash_bytes = stash_bytes,
    .forward = forward<float>,
    .backward = backward<float>,
    .forward_double = forward<double>,
    .backward_double = backward<double>,
};

}  // namespace regatta
