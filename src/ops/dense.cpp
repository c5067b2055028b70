// A fully connected layer on a vector, with optional bias and relu. Attributes: "features",
// "bias" (1), "relu" (0), and those of ops/start.h.
#include <vector>

#include "ops/check.h"
#include "ops/fused_relu.h"
#include "ops/ops.h"
#include "ops/start.h"

namespace regatta {
namespace {

bool has_bias(const Node& node) { return node.attributes.integer("bias", 1) != 0; }

Shape infer(const Node& node, Shapes inputs) {
  require_inputs(node, inputs, 1);
  if (inputs[0].rank() != 1)
    fail(node, "its input must be a vector, found " + inputs[0].text() + "; flatten it first");
  return {require_positive(node, "features")};
}

std::vector<TensorSpec> parameters(const Node& node, Shapes inputs) {
  const std::int64_t features = node.shape.elements();
  const std::int64_t fan_in = inputs[0].elements();
  const auto in = static_cast<double>(fan_in), out = static_cast<double>(features);
  std::vector<TensorSpec> specs{{"weight", {features, fan_in}, weight_start(node, in, out)}};
  if (has_bias(node)) specs.push_back({"bias", {features}, bias_start(node, in)});
  return specs;
}

// Bias and relu ride along with the multiply-adds and are not counted.
Cost cost(const Node& node, Shapes inputs) {
  const double multiply_adds = static_cast<double>(node.shape.elements() * inputs[0].elements());
  return {.forward_flops = 2 * multiply_adds, .backward_flops = 4 * multiply_adds};
}

template <class T>
void forward(const ReferenceCall<T>& call) {
  const std::int64_t from = call.shapes[0].elements();
  const std::int64_t to = call.node->shape.elements();
  for (std::int64_t sample = 0; sample < call.n; ++sample)
    for (std::int64_t o = 0; o < to; ++o) {
      double sum = has_bias(*call.node) ? call.parameters[1][o] : T{0};
      for (std::int64_t i = 0; i < from; ++i)
        sum += static_cast<double>(call.inputs[0][sample * from + i]) *
               call.parameters[0][o * from + i];
      call.output[sample * to + o] = static_cast<T>(sum);
    }
  apply_fused_relu(call);
}

template <class T>
void backward(const ReferenceCall<T>& call) {
  const std::int64_t from = call.shapes[0].elements();
  const std::int64_t to = call.node->shape.elements();
  const std::vector<T> gradient = gradient_before_relu(call);
  const auto gradient_at = [&](std::int64_t sample, std::int64_t o) {
    return static_cast<double>(gradient[static_cast<std::size_t>(sample * to + o)]);
  };
  if (T* input_gradient = call.input_gradients[0])
    for (std::int64_t sample = 0; sample < call.n; ++sample)
      for (std::int64_t i = 0; i < from; ++i) {
        double sum = 0;
        for (std::int64_t o = 0; o < to; ++o)
          sum += gradient_at(sample, o) * call.parameters[0][o * from + i];
        input_gradient[sample * from + i] += static_cast<T>(sum);
      }
  if (T* weight_gradient = call.parameter_gradients[0])
    for (std::int64_t o = 0; o < to; ++o)
      for (std::int64_t i = 0; i < from; ++i) {
        double sum = 0;
        for (std::int64_t sample = 0; sample < call.n; ++sample)
          sum += gradient_at(sample, o) * call.inputs[0][sample * from + i];
        weight_gradient[o * from + i] += static_cast<T>(sum);
      }
  if (has_bias(*call.node) && call.parameter_gradients[1])
    for (std::int64_t o = 0; o < to; ++o) {
      double sum = 0;
      for (std::int64_t sample = 0; sample < call.n; ++sample) sum += gradient_at(sample, o);
      call.parameter_gradients[1][o] += static_cast<T>(sum);
    }
}

}  // namespace

const OpDef dense_op{
    .name = "dense",
    .infer = infer,
    .parameters = parameters,
    .cost = cost,
    .backward_reads_input = true,
    .backward_reads_output = true,
    .splits_backward = true,
    .forward = forward<float>,
    .backward = backward<float>,
    .forward_double = forward<double>,
    .backward_double = backward<double>,
};

}  // namespace regatta
