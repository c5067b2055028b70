// Batch normalisation of each channel, then an optional residual (a second input that is added),
// then an optional relu. Attributes: "epsilon" (1e-5), "momentum" (0.1), "relu" (0), "group" (0).
//
// As in PyTorch, training divides by the biased variance of the batch but records the unbiased one
// in running_var; evaluation uses the running statistics.
//
// With a group above 0, training normalises every group of so many consecutive samples by its own
// statistics; the last group may be short. The running statistics move once, by the means over all
// groups of mean and of unbiased variance, each group counting by its values.
#include <algorithm>
#include <cmath>
#include <vector>

#include "graph/program.h"
#include "ops/check.h"
#include "ops/fused_relu.h"
#include "ops/ops.h"

namespace regatta {
namespace {

enum State { running_mean, running_var, num_batches_tracked };

Shape infer(const Node& node, Shapes inputs) {
  if (inputs.size() != 1 && inputs.size() != 2)
    fail(node, "it takes 1 or 2 inputs, found " + std::to_string(inputs.size()));
  if (inputs[0].rank() != 1 && inputs[0].rank() != 3)
    fail(node,
         "its input must be channels x height x width or a vector, found " + inputs[0].text());
  if (inputs.size() == 2 && inputs[1] != inputs[0])
    fail(node, "the residual is " + inputs[1].text() + " but its input is " + inputs[0].text() +
                   "; they must be equal");
  if (node.attributes.integer("group", 0) < 0) fail(node, "a group has 1 sample or more");
  return inputs[0];
}

std::vector<TensorSpec> parameters(const Node&, Shapes inputs) {
  const Shape per_channel{inputs[0].channels()};
  return {{"weight", per_channel, {Init::Kind::ones}}, {"bias", per_channel, {Init::Kind::zeros}}};
}

// In the order of State. The count is a float here and an integer in checkpoints.
std::vector<TensorSpec> states(const Node&, Shapes inputs) {
  const Shape per_channel{inputs[0].channels()};
  return {{"running_mean", per_channel, {Init::Kind::zeros}},
          {"running_var", per_channel, {Init::Kind::ones}},
          {"num_batches_tracked", {1}, {Init::Kind::zeros}}};
}

// Forward: mean (1), squared deviations (3), scale and shift (2). Backward: the two sums (4) and
// the input's gradient (5). The residual adds one each way.
Cost cost(const Node& node, Shapes inputs) {
  const double elements = static_cast<double>(node.shape.elements());
  const double residual = inputs.size() == 2 ? elements : 0;
  return {.forward_flops = 6 * elements + residual, .backward_flops = 9 * elements + residual};
}

// The values of one channel across samples that belong together: visit(index), `count` of them.
struct ChannelValues {
  std::int64_t first, samples, channels, pixels;

  template <class Visit>
  void for_each(std::int64_t channel, const Visit& visit) const {
    for (std::int64_t sample = first; sample < first + samples; ++sample)
      for (std::int64_t pixel = 0; pixel < pixels; ++pixel)
        visit((sample * channels + channel) * pixels + pixel);
  }
  double count() const { return static_cast<double>(samples * pixels); }
};

// Group by group; in evaluation, and without groups, all samples are one.
template <class T>
std::vector<ChannelValues> groups_of(const ReferenceCall<T>& call) {
  const Shape& shape = call.node->shape;
  const std::int64_t asked = call.training ? statistics_group(*call.node) : 0;
  const std::int64_t group = asked > 0 ? asked : call.n;
  std::vector<ChannelValues> groups;
  for (std::int64_t first = 0; first < call.n; first += group)
    groups.push_back(
        {first, std::min(group, call.n - first), shape.channels(), shape.height() * shape.width()});
  return groups;
}

struct Statistics {
  double mean = 0;
  double variance = 0;  // biased
};

template <class T>
Statistics group_statistics(const ReferenceCall<T>& call, const ChannelValues& values,
                            std::int64_t channel) {
  Statistics found;
  values.for_each(channel, [&](std::int64_t i) { found.mean += call.inputs[0][i]; });
  found.mean /= values.count();
  values.for_each(channel, [&](std::int64_t i) {
    const double deviation = call.inputs[0][i] - found.mean;
    found.variance += deviation * deviation;
  });
  found.variance /= values.count();
  return found;
}

// What this channel is normalised by.
template <class T>
Statistics statistics(const ReferenceCall<T>& call, const ChannelValues& values,
                      std::int64_t channel) {
  if (call.training) return group_statistics(call, values, channel);
  return {call.states[running_mean][channel], call.states[running_var][channel]};
}

template <class T>
double inverse_deviation(const ReferenceCall<T>& call, const Statistics& by) {
  return 1.0 / std::sqrt(by.variance + call.node->attributes.real("epsilon", 1e-5));
}

// What the running statistics of a channel see of a batch: sums over its groups, each group
// counting by its values.
struct Seen {
  double count = 0, means = 0, variances = 0;

  void add(double values, const Statistics& group) {
    // A lone value has no unbiased variance; it counts as 0 rather than poisoning the running one.
    const double unbiased = group.variance * values / std::max(values - 1, 1.0);
    count += values;
    means += values * group.mean;
    variances += values * unbiased;
  }
};

template <class T>
void update_running(const ReferenceCall<T>& call, std::int64_t channel, const Seen& seen) {
  const double momentum = call.node->attributes.real("momentum", 0.1);
  const auto move = [&](T& running, double mean) {
    running = static_cast<T>((1 - momentum) * running + momentum * mean);
  };
  move(call.states[running_mean][channel], seen.means / seen.count);
  move(call.states[running_var][channel], seen.variances / seen.count);
}

template <class T>
void forward(const ReferenceCall<T>& call) {
  const std::vector<ChannelValues> groups = groups_of(call);
  for (std::int64_t channel = 0; channel < call.node->shape.channels(); ++channel) {
    Seen seen;
    for (const ChannelValues& values : groups) {
      const Statistics by = statistics(call, values, channel);
      const double scale = call.parameters[0][channel] * inverse_deviation(call, by);
      const double bias = call.parameters[1][channel];
      values.for_each(channel, [&](std::int64_t i) {
        const double residual = call.inputs.size() == 2 ? call.inputs[1][i] : T{0};
        call.output[i] = static_cast<T>((call.inputs[0][i] - by.mean) * scale + bias + residual);
      });
      seen.add(values.count(), by);
    }
    if (call.training) update_running(call, channel, seen);
  }
  if (call.training) call.states[num_batches_tracked][0] += T{1};
  apply_fused_relu(call);
}

template <class T>
void backward_of_group(const ReferenceCall<T>& call, const ChannelValues& values,
                       const std::vector<T>& gradient) {
  const auto gradient_at = [&](std::int64_t i) {
    return static_cast<double>(gradient[static_cast<std::size_t>(i)]);
  };
  for (std::int64_t channel = 0; channel < values.channels; ++channel) {
    const Statistics by = statistics(call, values, channel);
    const double inverse = inverse_deviation(call, by);
    const auto normalised = [&](std::int64_t i) { return (call.inputs[0][i] - by.mean) * inverse; };
    double sum = 0, sum_normalised = 0;
    values.for_each(channel, [&](std::int64_t i) {
      sum += gradient_at(i);
      sum_normalised += gradient_at(i) * normalised(i);
    });
    if (T* weight = call.parameter_gradients[0]) weight[channel] += static_cast<T>(sum_normalised);
    if (T* bias = call.parameter_gradients[1]) bias[channel] += static_cast<T>(sum);
    if (T* input = call.input_gradients[0]) {
      // In training the statistics move with the input; in evaluation they are constants.
      const double mean = call.training ? sum / values.count() : 0;
      const double mean_normalised = call.training ? sum_normalised / values.count() : 0;
      const double scale = call.parameters[0][channel] * inverse;
      values.for_each(channel, [&](std::int64_t i) {
        input[i] +=
            static_cast<T>(scale * (gradient_at(i) - mean - normalised(i) * mean_normalised));
      });
    }
  }
}

template <class T>
void backward(const ReferenceCall<T>& call) {
  const std::vector<T> gradient = gradient_before_relu(call);
  for (const ChannelValues& values : groups_of(call)) backward_of_group(call, values, gradient);
  if (call.input_gradients.size() == 2 && call.input_gradients[1])
    for (std::size_t i = 0; i < gradient.size(); ++i) call.input_gradients[1][i] += gradient[i];
}

}  // namespace

const OpDef batch_norm_op{
    .name = "batch_norm",
    .infer = infer,
    .parameters = parameters,
    .states = states,
    .cost = cost,
    .backward_reads_input = true,
    .backward_reads_output = true,
    .meets = true,
    .forward = forward<float>,
    .backward = backward<float>,
    .forward_double = forward<double>,
    .backward_double = backward<double>,
};

}  // namespace regatta
