// The mean of each channel's pixels: an image becomes a vector of its channels.
#include "ops/check.h"
#include "ops/ops.h"

namespace regatta {
namespace {

Shape infer(const Node& node, Shapes inputs) { return {require_image(node, inputs).channels()}; }

Cost cost(const Node&, Shapes inputs) {
  const double elements = static_cast<double>(inputs[0].elements());
  return {.forward_flops = elements, .backward_flops = elements};
}

template <class T>
void forward(const ReferenceCall<T>& call) {
  const std::int64_t pixels = call.shapes[0].height() * call.shapes[0].width();
  for (std::int64_t o = 0; o < call.n * call.node->shape.elements(); ++o) {
    double sum = 0;
    for (std::int64_t i = 0; i < pixels; ++i) sum += call.inputs[0][o * pixels + i];
    call.output[o] = static_cast<T>(sum / static_cast<double>(pixels));
  }
}

template <class T>
void backward(const ReferenceCall<T>& call) {
  if (!call.input_gradients[0]) return;
  const std::int64_t pixels = call.shapes[0].height() * call.shapes[0].width();
  for (std::int64_t o = 0; o < call.n * call.node->shape.elements(); ++o)
    for (std::int64_t i = 0; i < pixels; ++i)
      call.input_gradients[0][o * pixels + i] += call.output_gradient[o] / static_cast<T>(pixels);
}

}  // namespace

const OpDef global_average_pool_op{
    .name = "global_average_pool",
    .infer = infer,
    .cost = cost,
    .forward = forward<float>,
    .backward = backward<float>,
    .forward_double = forward<double>,
    .backward_double = backward<double>,
};

}  // namespace regatta
