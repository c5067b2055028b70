// The loss: softmax and negative log-likelihood of the label. Its value is two numbers a sample:
// the loss, and 1 where the largest logit (of equals, the first) is the label's, else 0. Nothing is
// averaged here: whoever starts the backward pass divides by the batch.
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

template <class T>
void forward(const ReferenceCall<T>& call) {
  const std::int64_t classes = call.shapes[0].elements();
  for (std::int64_t sample = 0; sample < call.n; ++sample) {
    const T* logits = call.inputs[0] + sample * classes;
    const std::int64_t label = call.labels[sample];
    const std::int64_t predicted = std::max_element(logits, logits + classes) - logits;
    call.output[2 * sample] = static_cast<T>(log_sum_exp(logits, classes) - logits[label]);
    call.output[2 * sample + 1] = predicted == label ? T{1} : T{0};
  }
}

template <class T>
void backward(const ReferenceCall<T>& call) {
  if (!call.input_gradients[0]) return;
  const std::int64_t classes = call.shapes[0].elements();
  for (std::int64_t sample = 0; sample < call.n; ++sample) {
    const T* logits = call.inputs[0] + sample * classes;
    const double normaliser = log_sum_exp(logits, classes);
    // The count of correct answers has no gradient, so only the loss's is read.
    const double gradient = call.output_gradient[2 * sample];
    for (std::int64_t c = 0; c < classes; ++c) {
      const double target = c == call.labels[sample] ? 1 : 0;
      const double softmax = std::exp(logits[c] - normaliser);
      call.input_gradients[0][sample * classes + c] +=
          static_cast<T>(gradient * (softmax - target));
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
