// Each sample normalised by its own mean and biased variance, then scaled and shifted element by
// element. Attributes: "epsilon" (1e-5). Weight and bias have the shape of the whole sample.
#include <cmath>
#include <string>

#include "ops/check.h"
#include "ops/ops.h"

namespace regatta {
namespace {

double epsilon_of(const Node& node) { return node.attributes.real("epsilon", 1e-5); }

Shape infer(const Node& node, Shapes inputs) {
  require_inputs(node, inputs, 1);
  if (!(epsilon_of(node) > 0))
    fail(node, "it needs an 'epsilon' above 0, found " + std::to_string(epsilon_of(node)));
  return inputs[0];
}

std::vector<TensorSpec> parameters(const Node&, Shapes inputs) {
  return {{"weight", inputs[0], {Init::Kind::ones}}, {"bias", inputs[0], {Init::Kind::zeros}}};
}

// Mean (1), squared deviations (3), scale and shift (4); backward the sums and the rest.
Cost cost(const Node& node, Shapes) {
  const double elements = static_cast<double>(node.shape.elements());
  return {.forward_flops = 8 * elements, .backward_flops = 16 * elements};
}

struct Statistics {
  double mean = 0, inverse_deviation = 0;
};

template <class T>
Statistics statistics(const Node& node, const T* values) {
  const std::int64_t count = node.shape.elements();
  double mean = 0, deviations = 0;
  for (std::int64_t i = 0; i < count; ++i) mean += values[i];
  mean /= static_cast<double>(count);
  for (std::int64_t i = 0; i < count; ++i) {
    const double distance = values[i] - mean;
    deviations += distance * distance;
  }
  return {mean, 1 / std::sqrt(deviations / static_cast<double>(count) + epsilon_of(node))};
}

template <class T>
void forward(const ReferenceCall<T>& call) {
  const std::int64_t count = call.node->shape.elements();
  for (std::int64_t sample = 0; sample < call.n; ++sample) {
    const T* x = call.inputs[0] + sample * count;
    T* y = call.output + sample * count;
    const Statistics by = statistics(*call.node, x);
    for (std::int64_t i = 0; i < count; ++i)
      y[i] = static_cast<T>((x[i] - by.mean) * by.inverse_deviation * call.parameters[0][i] +
                            call.parameters[1][i]);
  }
}

template <class T>
void backward(const ReferenceCall<T>& call) {
  const std::int64_t count = call.node->shape.elements();
  const auto size = static_cast<std::size_t>(count);
  std::vector<double> weight_sums(size), bias_sums(size);
  for (std::int64_t sample = 0; sample < call.n; ++sample) {
    const T* x = call.inputs[0] + sample * count;
    const T* gradient = call.output_gradient + sample * count;
    const Statistics by = statistics(*call.node, x);
    const auto normalised = [&](std::int64_t i) { return (x[i] - by.mean) * by.inverse_deviation; };
    // Means of the gradient behind scale and shift, and of it times the normalised value.
    double mean = 0, mean_normalised = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const double scaled = static_cast<double>(gradient[i]) * call.parameters[0][i];
      mean += scaled / static_cast<double>(count);
      mean_normalised += scaled * normalised(i) / static_cast<double>(count);
      weight_sums[static_cast<std::size_t>(i)] += gradient[i] * normalised(i);
      bias_sums[static_cast<std::size_t>(i)] += gradient[i];
    }
    if (T* input = call.input_gradients[0])
      for (std::int64_t i = 0; i < count; ++i)
        input[sample * count + i] += static_cast<T>(
            by.inverse_deviation * (static_cast<double>(gradient[i]) * call.parameters[0][i] -
                                    mean - normalised(i) * mean_normalised));
  }
  for (std::size_t i = 0; i < size; ++i) {
    if (T* weight = call.parameter_gradients[0]) weight[i] += static_cast<T>(weight_sums[i]);
    if (T* bias = call.parameter_gradients[1]) bias[i] += static_cast<T>(bias_sums[i]);
  }
}

}  // namespace

const OpDef layer_norm_op{
    .name = "layer_norm",
    .infer = infer,
    .parameters = parameters,
    .cost = cost,
    .backward_reads_input = true,
    .forward = forward<float>,
    .backward = backward<float>,
    .forward_double = forward<double>,
    .backward_double = backward<double>,
};

}  // namespace regatta
