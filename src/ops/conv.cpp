// Two-dimensional convolution (cross-correlation, as the field means it), with optional bias and
// relu. With groups, each group of filters sees its own group of channels. Attributes: "channels",
// "kernel", "stride" (1), "padding" (0), "dilation" (1), "groups" (1), "bias" (0), "relu" (0),
// and those of ops/start.h.
#include <cmath>
#include <vector>

#include "ops/check.h"
#include "ops/fused_relu.h"
#include "ops/ops.h"
#include "ops/start.h"
#include "ops/window.h"

namespace regatta {
namespace {

Window conv_window(const Node& node) { return window_of(node, 1); }

std::int64_t groups_of(const Node& node) { return node.attributes.integer("groups", 1); }

Shape infer(const Node& node, Shapes inputs) {
  const Shape& input = require_image(node, inputs);
  const std::int64_t channels = require_positive(node, "channels");
  const std::int64_t groups = groups_of(node);
  if (groups < 1) fail(node, "it needs 'groups' of at least 1, found " + std::to_string(groups));
  if (input.channels() % groups != 0 || channels % groups != 0)
    fail(node, "groups " + std::to_string(groups) + " must divide its " +
                   std::to_string(input.channels()) + " input and " + std::to_string(channels) +
                   " output channels");
  const Window window = conv_window(node);
  require_fits(node, window, input);
  const Extent positions = window.positions(input);
  return {channels, positions.height, positions.width};
}

std::vector<TensorSpec> parameters(const Node& node, Shapes inputs) {
  const std::int64_t channels = node.shape.channels();
  const Extent kernel = conv_window(node).kernel;
  const std::int64_t seen = inputs[0].channels() / groups_of(node);
  const double fan_in = static_cast<double>(seen * kernel.area());
  const double fan_out = static_cast<double>(channels * kernel.area());
  std::vector<TensorSpec> specs{{.suffix = "weight",
                                 .shape = {channels, seen, kernel.height, kernel.width},
                                 .init = weight_start(node, fan_in, fan_out)}};
  if (node.attributes.flag("bias")) specs.push_back({"bias", {channels}, bias_start(node, fan_in)});
  return specs;
}

// Bias and relu ride along with the multiply-adds and are not counted.
Cost cost(const Node& node, Shapes inputs) {
  const std::int64_t seen = inputs[0].channels() / groups_of(node);
  const double multiply_adds =
      static_cast<double>(node.shape.elements() * seen * conv_window(node).kernel.area());
  return {.forward_flops = 2 * multiply_adds, .backward_flops = 4 * multiply_adds};
}

// Where a window's values lie in their image, channel by channel, as a filter of one group orders
// its weights; -1 for padding.
using Sources = std::vector<std::int64_t>;

Sources sources_of(const Shape& in, const Window& window, std::int64_t row, std::int64_t column) {
  const std::int64_t taps = window.kernel.area();
  Sources sources(static_cast<std::size_t>(in.channels() * taps), -1);
  for (std::int64_t channel = 0; channel < in.channels(); ++channel)
    window.for_each_pixel(in, row, column, [&](std::int64_t y, std::int64_t x, std::int64_t tap) {
      const auto weight = static_cast<std::size_t>(channel * taps + tap);
      sources[weight] = (channel * in.height() + y) * in.width() + x;
    });
  return sources;
}

// Calls visit(sample, pixel, sources) for every pixel of the output. Forward and backward walk the
// same windows, so they cannot disagree on what a filter sees.
template <class T, class Visit>
void for_each_window(const ReferenceCall<T>& call, const Visit& visit) {
  const Shape& out = call.node->shape;
  const Window window = conv_window(*call.node);
  for (std::int64_t row = 0; row < out.height(); ++row)
    for (std::int64_t column = 0; column < out.width(); ++column) {
      const Sources sources = sources_of(call.shapes[0], window, row, column);
      for (std::int64_t sample = 0; sample < call.n; ++sample)
        visit(sample, row * out.width() + column, sources);
    }
}

// How a filter's weights lie: how many it has, and which of the window's values they meet.
struct Filters {
  explicit Filters(const Node& node, const Shape& in)
      : weights(in.channels() / groups_of(node) * conv_window(node).kernel.area()),
        per_group(node.shape.channels() / groups_of(node)) {}
  std::int64_t first_value(std::int64_t filter) const { return filter / per_group * weights; }

  std::int64_t weights, per_group;
};

// Sums are taken in double, so that the float kernels err by rounding their results alone.
using Sums = std::vector<double>;

template <class T>
Sums values_at(const Sources& sources, const T* image) {
  Sums values;
  for (const std::int64_t source : sources) values.push_back(source < 0 ? 0.0 : image[source]);
  return values;
}

template <class T>
void add_to(T* destination, const Sums& sums) {
  for (std::size_t i = 0; i < sums.size(); ++i) destination[i] += static_cast<T>(sums[i]);
}

template <class T>
void forward(const ReferenceCall<T>& call) {
  const Shape& in = call.shapes[0];
  const Shape& out = call.node->shape;
  const std::int64_t pixels = out.height() * out.width();
  const Filters filters(*call.node, in);
  const T* bias = call.parameters.size() > 1 ? call.parameters[1] : nullptr;
  for_each_window(call, [&](std::int64_t sample, std::int64_t pixel, const Sources& sources) {
    const Sums seen = values_at(sources, call.inputs[0] + sample * in.elements());
    const T* weight = call.parameters[0];
    for (std::int64_t filter = 0; filter < out.channels(); ++filter) {
      const double* values = seen.data() + filters.first_value(filter);
      double sum = bias ? bias[filter] : T{0};
      for (std::int64_t i = 0; i < filters.weights; ++i) sum += values[i] * *weight++;
      call.output[(sample * out.channels() + filter) * pixels + pixel] = static_cast<T>(sum);
    }
  });
  apply_fused_relu(call);
}

template <class T>
void backward(const ReferenceCall<T>& call) {
  const Shape& in = call.shapes[0];
  const Shape& out = call.node->shape;
  const std::int64_t pixels = out.height() * out.width();
  const Filters filters(*call.node, in);
  const std::int64_t weights = filters.weights;
  const bool has_bias = call.parameters.size() > 1;
  const std::vector<T> gradients = gradient_before_relu(call);
  Sums input_sums(static_cast<std::size_t>(call.n * in.elements()));
  Sums weight_sums(static_cast<std::size_t>(out.channels() * weights));
  Sums bias_sums(static_cast<std::size_t>(out.channels()));
  for_each_window(call, [&](std::int64_t sample, std::int64_t pixel, const Sources& sources) {
    const Sums seen = values_at(sources, call.inputs[0] + sample * in.elements());
    Sums seen_gradient(seen.size());
    for (std::int64_t filter = 0; filter < out.channels(); ++filter) {
      const std::int64_t index = (sample * out.channels() + filter) * pixels + pixel;
      const double gradient = gradients[static_cast<std::size_t>(index)];
      const T* weight = call.parameters[0] + filter * weights;
      double* weight_sum = weight_sums.data() + filter * weights;
      bias_sums[static_cast<std::size_t>(filter)] += gradient;
      const double* values = seen.data() + filters.first_value(filter);
      double* value_gradients = seen_gradient.data() + filters.first_value(filter);
      for (std::int64_t i = 0; i < weights; ++i) weight_sum[i] += gradient * values[i];
      for (std::int64_t i = 0; i < weights; ++i) value_gradients[i] += gradient * weight[i];
    }
    double* input_sum = input_sums.data() + sample * in.elements();
    for (std::size_t i = 0; i < sources.size(); ++i)
      if (sources[i] >= 0) input_sum[sources[i]] += seen_gradient[i];
  });
  if (call.input_gradients[0]) add_to(call.input_gradients[0], input_sums);
  if (call.parameter_gradients[0]) add_to(call.parameter_gradients[0], weight_sums);
  if (has_bias && call.parameter_gradients[1]) add_to(call.parameter_gradients[1], bias_sums);
}

}  // namespace

const OpDef conv_op{
    .name = "conv",
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
