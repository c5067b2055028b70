// The loss: softmax and negative log-likelihood of the target, which may be a blend of two labels;
// with `smoothing` some of it is spread over all classes. Its value is two numbers a sample: the
// loss, and 1 where the largest logit (of equals, the first) is the expected label's, else 0.
// Nothing is averaged here: whoever starts the backward pass divides by the batch.
#include <algorithm>
#include <cmath>

#include "ops/check.h"
#include "ops/ops.h"

namespace regatta {
namespace {

Shape infer(const Node& node, Shapes inputs) {
  require_inputs(node, inputs, 1);
  if (inputs[0].rank() != 1)
    fail(node, "logits must be a vector, found " + inputs[0].text() + "; end with a dense layer");
  if (const double smoothing = node.attributes.real("smoothing", 0);
      !(smoothing >= 0 && smoothing < 1))
    fail(node, "smoothing must be at least 0 and below 1, found " + std::to_string(smoothing));
  return {2};
}

// Per class: maximum, subtraction, exponential, sum; backward the softmax again and the scaling.
Cost cost(const Node&, Shapes inputs) {
  const double classes = static_cast<double>(inputs[0].elements());
  return {.forward_flops = 4 * classes, .backward_flops = 6 * classes};
}

// The logarithm of the sum of exponentials, taken relative to the largest so that none overflows.
template <class T>
double log_sum_exp(const T* logits, std::int64_t classes) {
  const double largest = *std::max_element(logits, logits + classes);
  double sum = 0;
  for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(logits[c] - largest);
  return largest + std::log(sum);
}

// Label smoothing is for training: a test says how good the answers are.
double smoothing_of(const Node& node, bool training) {
  return training ? node.attributes.real("smoothing", 0) : 0;
}

// How much of the target is class `c`.
double share_of(const Target& target, std::int64_t c, double smoothing, std::int64_t classes) {
  double share = c == target.label ? 1 - double(target.other_share) : 0;
  if (c == target.other) share += double(target.other_share);
  return (1 - smoothing) * share + smoothing / static_cast<double>(classes);
}

template <class T>
void forward(const ReferenceCall<T>& call) {
  const std::int64_t classes = call.shapes[0].elements();
  const double smoothing = smoothing_of(*call.node, call.training);
  for (std::int64_t sample = 0; sample < call.n; ++sample) {
    const T* logits = call.inputs[0] + sample * classes;
    const Target& target = call.targets[sample];
    const double normaliser = log_sum_exp(logits, classes);
    double loss = 0;
    for (std::int64_t c = 0; c < classes; ++c)
      if (const double share = share_of(target, c, smoothing, classes); share > 0)
        loss += share * (normaliser - logits[c]);
    const std::int64_t predicted = std::max_element(logits, logits + classes) - logits;
    call.output[2 * sample] = static_cast<T>(loss);
    call.output[2 * sample + 1] = predicted == target.expected() ? T{1} : T{0};
  }
}

template <class T>
void backward(const ReferenceCall<T>& call) {
  if (!call.input_gradients[0]) return;
  const std::int64_t classes = call.shapes[0].elements();
  const double smoothing = smoothing_of(*call.node, call.training);
  for (std::int64_t sample = 0; sample < call.n; ++sample) {
    const T* logits = call.inputs[0] + sample * classes;
    const double normaliser = log_sum_exp(logits, classes);
    // The count of correct answers has no gradient, so only the loss's is read.
    const double gradient = call.output_gradient[2 * sample];
    for (std::int64_t c = 0; c < classes; ++c) {
      const double share = share_of(call.targets[sample], c, smoothing, classes);
      const double softmax = std::exp(logits[c] - normaliser);
      call.input_gradients[0][sample * classes + c] += static_cast<T>(gradient * (softmax - share));
    }
  }
}

}  // namespace

const OpDef cross_entropy_op{
    .name = "cross_entropy",
    .infer = infer,
    .cost = cost,
    .backward_reads_input = true,
    .forward = forward<float>,
    .backward = backward<float>,
    .forward_double = forward<double>,
    .backward_double = backward<double>,
};

}  // namespace regatta
