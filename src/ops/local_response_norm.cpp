// Each value divided by a power of its neighbourhood across channels: x / d ^ beta with
// d = k + alpha / size * (sum of squares of `size` channels around it). Channels beyond the edge
// count as zeros. Attributes: "size", "alpha" (1e-4), "beta" (0.75), "k" (1).
#include <algorithm>
#include <cmath>

#include "ops/check.h"
#include "ops/ops.h"

namespace regatta {
namespace {

struct Settings {
  explicit Settings(const Node& node)
      : size(node.attributes.integer("size", 0)),
        share(node.attributes.real("alpha", 1e-4) / static_cast<double>(size)),
        beta(node.attributes.real("beta", 0.75)),
        k(node.attributes.real("k", 1)) {}

  // An even neighbourhood has one channel more before than after.
  std::int64_t before() const { return size / 2; }
  std::int64_t after() const { return (size - 1) / 2; }

  std::int64_t size;
  double share, beta, k;
};

Shape infer(const Node& node, Shapes inputs) {
  const Shape& input = require_image(node, inputs);
  require_positive(node, "size");
  const Settings settings(node);
  // What is raised to a power must stay positive.
  if (!(settings.share >= 0) || !(settings.k > 0) || !std::isfinite(settings.beta))
    fail(node, "it needs 'alpha' of at least 0, 'k' above 0 and a finite 'beta', found " +
                   std::to_string(node.attributes.real("alpha", 1e-4)) + ", " +
                   std::to_string(settings.k) + " and " + std::to_string(settings.beta));
  return input;
}

// Squares, the running sum, a power and a quotient; backward about twice that.
Cost cost(const Node& node, Shapes) {
  const double elements = static_cast<double>(node.shape.elements());
  return {.forward_flops = 16 * elements, .backward_flops = 32 * elements};
}

// Calls visit(index of the first channel, distance between channels) for every pixel.
template <class T, class Visit>
void for_each_pixel(const ReferenceCall<T>& call, const Visit& visit) {
  const Shape& shape = call.node->shape;
  const std::int64_t pixels = shape.height() * shape.width();
  for (std::int64_t sample = 0; sample < call.n; ++sample)
    for (std::int64_t pixel = 0; pixel < pixels; ++pixel)
      visit(sample * shape.elements() + pixel, pixels);
}

template <class T>
double divisor_base(const Settings& settings, const T* values, std::int64_t step,
                    std::int64_t channels, std::int64_t channel) {
  double sum = 0;
  const std::int64_t first = std::max<std::int64_t>(channel - settings.before(), 0);
  const std::int64_t last = std::min(channel + settings.after(), channels - 1);
  for (std::int64_t c = first; c <= last; ++c) {
    const double value = values[c * step];
    sum += value * value;
  }
  return settings.k + settings.share * sum;
}

template <class T>
void forward(const ReferenceCall<T>& call) {
  const Settings settings(*call.node);
  const std::int64_t channels = call.node->shape.channels();
  for_each_pixel(call, [&](std::int64_t at, std::int64_t step) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const double base = divisor_base(settings, call.inputs[0] + at, step, channels, c);
      call.output[at + c * step] =
          static_cast<T>(call.inputs[0][at + c * step] * std::pow(base, -settings.beta));
    }
  });
}

template <class T>
void backward(const ReferenceCall<T>& call) {
  if (!call.input_gradients[0]) return;
  const Settings settings(*call.node);
  const std::int64_t channels = call.node->shape.channels();
  for_each_pixel(call, [&](std::int64_t at, std::int64_t step) {
    const T* x = call.inputs[0] + at;
    T* input_gradient = call.input_gradients[0] + at;
    for (std::int64_t c = 0; c < channels; ++c) {
      const double base = divisor_base(settings, x, step, channels, c);
      const double gradient = call.output_gradient[at + c * step];
      input_gradient[c * step] += static_cast<T>(gradient * std::pow(base, -settings.beta));
      // Through the divisor, to every channel of the neighbourhood.
      const double through = -2 * settings.beta * settings.share * gradient * x[c * step] *
                             std::pow(base, -settings.beta - 1);
      const std::int64_t first = std::max<std::int64_t>(c - settings.before(), 0);
      const std::int64_t last = std::min(c + settings.after(), channels - 1);
      for (std::int64_t j = first; j <= last; ++j)
        input_gradient[j * step] += static_cast<T>(through * x[j * step]);
    }
  });
}

}  // namespace

const OpDef local_response_norm_op{
    .name = "local_response_norm",
    .infer = infer,
    .cost = cost,
    .backward_reads_input = true,
    .forward = forward<float>,
    .backward = backward<float>,
    .forward_double = forward<double>,
    .backward_double = backward<double>,
};

}  // namespace regatta
