// The sum of two values of the same shape: where a residual branch joins.
#include "ops/check.h"
#include "ops/ops.h"

namespace regatta {
namespace {

Shape infer(const Node& node, Shapes inputs) {
  require_inputs(node, inputs, 2);
  if (inputs[0] != inputs[1])
    fail(node,
         "its inputs must have one shape, found " + inputs[0].text() + " and " + inputs[1].text());
  return inputs[0];
}

// Backward adds the gradient to each input's.
Cost cost(const Node& node, Shapes) {
  const double elements = static_cast<double>(node.shape.elements());
  return {.forward_flops = elements, .backward_flops = 2 * elements};
}

template <class T>
void forward(const ReferenceCall<T>& call) {
  for (std::int64_t i = 0; i < call.n * call.node->shape.elements(); ++i)
    call.output[i] = call.inputs[0][i] + call.inputs[1][i];
}

template <class T>
void backward(const ReferenceCall<T>& call) {
  for (T* input_gradient : call.input_gradients)
    if (input_gradient)
      for (std::int64_t i = 0; i < call.n * call.node->shape.elements(); ++i)
        input_gradient[i] += call.output_gradient[i];
}

}  // namespace

const OpDef add_op{
    .name = "add",
    .infer = infer,
    .cost = cost,
    .forward = forward<float>,
    .backward = backward<float>,
    .forward_double = forward<double>,
    .backward_double = backward<double>,
};

}  // namespace regatta
