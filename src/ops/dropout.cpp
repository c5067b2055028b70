// In training, each element is dropped with a probability and the others are scaled up, so that the
// expectation stays; in evaluation the identity. Attributes: "probability" (0.5). Backward draws
// again what forward drew; nothing is kept in between.
#include "ops/dropout.h"

#include <string>

#include "ops/elementwise.h"
#include "ops/ops.h"

namespace regatta {
namespace {

double probability_of(const Node& node) { return node.attributes.real("probability", 0.5); }

Shape infer(const Node& node, Shapes inputs) {
  const double probability = probability_of(node);
  if (!(probability >= 0 && probability < 1))
    fail(node, "it needs a 'probability' from 0 to below 1, found " + std::to_string(probability));
  return same_shape(node, inputs);
}

// A draw is three multiplications and some shifts.
Cost cost(const Node& node, Shapes) {
  const double total = 8 * static_cast<double>(node.shape.elements());
  return {.forward_flops = total, .backward_flops = total};
}

// Calls visit(index in the chunk, factor).
template <class T, class Visit>
void for_each_factor(const ReferenceCall<T>& call, const Visit& visit) {
  const DropoutDraw draw = dropout_draw(*call.node);
  const std::uint64_t key = dropout_key(call.seed, draw.stream, call.step);
  const auto scale = static_cast<T>(1 / (1 - probability_of(*call.node)));
  const std::int64_t elements = call.node->shape.elements();
  const auto first = static_cast<std::uint64_t>(call.first_sample * elements);
  for (std::int64_t i = 0; i < call.n * elements; ++i) {
    const bool kept = !call.training ||
                      dropout_keeps(key, first + static_cast<std::uint64_t>(i), draw.probability);
    visit(i, !kept ? T{0} : call.training ? scale : T{1});
  }
}

template <class T>
void forward(const ReferenceCall<T>& call) {
  for_each_factor(call,
                  [&](std::int64_t i, T factor) { call.output[i] = factor * call.inputs[0][i]; });
}

template <class T>
void backward(const ReferenceCall<T>& call) {
  if (T* gradient = call.input_gradients[0])
    for_each_factor(
        call, [&](std::int64_t i, T factor) { gradient[i] += factor * call.output_gradient[i]; });
}

}  // namespace

DropoutDraw dropout_draw(const Node& node) {
  const double probability = probability_of(node);
  return {.stream = stream_of("dropout " + node.name),
          .probability = static_cast<float>(probability),
          .scale = static_cast<float>(1 / (1 - probability))};
}

const OpDef dropout_op{
    .name = "dropout",
    .infer = infer,
    .cost = cost,
    .forward = forward<float>,
    .backward = backward<float>,
    .forward_double = forward<double>,
    .backward_double = backward<double>,
};

}  // namespace regatta
