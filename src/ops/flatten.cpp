// An image seen as a vector, channel by channel: the same numbers in the same order.
#include <algorithm>

#include "ops/check.h"
#include "ops/ops.h"

namespace regatta {
namespace {

Shape infer(const Node& node, Shapes inputs) {
  require_inputs(node, inputs, 1);
  return {inputs[0].elements()};
}

Cost cost(const Node&, Shapes) { return {}; }

template <class T>
void forward(const ReferenceCall<T>& call) {
  std::copy_n(call.inputs[0], call.n * call.node->shape.elements(), call.output);
}

template <class T>
void backward(const ReferenceCall<T>& call) {
  if (T* input_gradient = call.input_gradients[0])
    for (std::int64_t i = 0; i < call.n * call.node->shape.elements(); ++i)
      input_gradient[i] += call.output_gradient[i];
}

}  // namespace

const OpDef flatten_op{
    .name = "flatten",
    .infer = infer,
    .cost = cost,
    .forward = forward<float>,
    .backward = backward<float>,
    .forward_double = forward<double>,
    .backward_double = backward<double>,
};

}  // namespace regatta
