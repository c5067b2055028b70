// What operators that treat each element alone have in common. Such an operator is a struct with
// value(node, x) and slope(node, x, y): the derivative at x, where the value is y.
#pragma once

#include "ops/check.h"

namespace regatta {

inline Shape same_shape(const Node& node, Shapes inputs) {
  require_inputs(node, inputs, 1);
  return inputs[0];
}

template <class Function, class T>
void elementwise_forward(const ReferenceCall<T>& call) {
  for (std::int64_t i = 0; i < call.n * call.node->shape.elements(); ++i)
    call.output[i] =
        static_cast<T>(Function::value(*call.node, static_cast<double>(call.inputs[0][i])));
}

template <class Function, class T>
void elementwise_backward(const ReferenceCall<T>& call) {
  T* input_gradient = call.input_gradients[0];
  if (!input_gradient) return;
  for (std::int64_t i = 0; i < call.n * call.node->shape.elements(); ++i)
    input_gradient[i] +=
        static_cast<T>(Function::slope(*call.node, call.inputs[0][i], call.output[i]) *
                       static_cast<double>(call.output_gradient[i]));
}

// `flops` an element each way. Slopes come from the output where they can, since what follows
// usually keeps it anyway.
template <class Function, int flops>
Cost elementwise_cost(const Node& node, Shapes) {
  const double total = flops * static_cast<double>(node.shape.elements());
  return {.forward_flops = total, .backward_flops = total};
}

enum class SlopeFrom { input, output };

template <class Function, int flops>
constexpr OpDef elementwise_op(std::string_view name, SlopeFrom from,
                               Shape (*infer)(const Node&, Shapes) = same_shape) {
  return {
      .name = name,
      .infer = infer,
      .cost = elementwise_cost<Function, flops>,
      .backward_reads_input = from == SlopeFrom::input,
      .backward_reads_output = from == SlopeFrom::output,
      .forward = elementwise_forward<Function, float>,
      .backward = elementwise_backward<Function, float>,
      .forward_double = elementwise_forward<Function, double>,
      .backward_double = elementwise_backward<Function, double>,
  };
}

}  // namespace regatta
