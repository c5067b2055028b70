// max(x, 0), element by element. The gradient at exactly 0 is 0, as in PyTorch.
#include <algorithm>

#include "ops/check.h"
#include "ops/ops.h"

namespace regatta {
namespace {

Shape infer(const Node& node, Shapes inputs) {
  require_inputs(node, inputs, 1);
  return inputs[0];
}

Cost cost(const Node& node, Shapes) {
  const double elements = static_cast<double>(node.shape.elements());
  return {.forward_flops = elements, .backward_flops = elements};
}

template <class T>
void forward(const ReferenceCall<T>& call) {
  for (std::int64_t i = 0; i < call.n * call.node->shape.elements(); ++i)
    call.output[i] = std::max(call.inputs[0][i], T{0});
}

template <class T>
void backward(const ReferenceCall<T>& call) {
  if (T* input_gradient = call.input_gradients[0])
    for (std::int64_t i = 0; i < call.n * call.node->shape.elements(); ++i)
      if (call.output[i] > T{0}) input_gradient[i] += call.output_gradient[i];
}

}  // namespace

const OpDef relu_op{
    .name = "relu",
    .infer = infer,
    .cost = cost,
    .backward_reads_output = true,
    .forward = forward<float>,
    .backward = backward<float>,
    .forward_double = forward<double>,
    .backward_double = backward<double>,
};

}  // namespace regatta
