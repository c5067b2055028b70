// Its inputs one after another, along the channels of images or the features of vectors. Two to
// eight of them; the network builder chains more.
#include <algorithm>

#include "ops/check.h"
#include "ops/ops.h"

namespace regatta {
namespace {

Shape infer(const Node& node, Shapes inputs) {
  if (inputs.size() < 2 || inputs.size() > most_inputs)
    fail(node, "it takes 2 to " + std::to_string(most_inputs) + " inputs, found " +
                   std::to_string(inputs.size()));
  std::int64_t channels = 0;
  for (const Shape& input : inputs) {
    if (input.rank() != inputs[0].rank() || input.height() != inputs[0].height() ||
        input.width() != inputs[0].width())
      fail(node, "its inputs may differ in channels alone, found " + inputs[0].text() + " and " +
                     input.text());
    channels += input.channels();
  }
  if (inputs[0].rank() == 3) return {channels, inputs[0].height(), inputs[0].width()};
  if (inputs[0].rank() != 1)
    fail(node, "its inputs must be images or vectors, found " + inputs[0].text());
  return {channels};
}

// Nothing is computed; moving a value counts as one.
Cost cost(const Node& node, Shapes) {
  const double elements = static_cast<double>(node.shape.elements());
  return {.forward_flops = elements, .backward_flops = elements};
}

// Calls visit(input, where it begins in its own tensor, where in the output, elements) per sample.
template <class T, class Visit>
void for_each_piece(const ReferenceCall<T>& call, const Visit& visit) {
  const std::int64_t whole = call.node->shape.elements();
  for (std::int64_t sample = 0; sample < call.n; ++sample) {
    std::int64_t at = sample * whole;
    for (std::size_t i = 0; i < call.shapes.size(); ++i) {
      const std::int64_t elements = call.shapes[i].elements();
      visit(i, sample * elements, at, elements);
      at += elements;
    }
  }
}

template <class T>
void forward(const ReferenceCall<T>& call) {
  for_each_piece(call, [&](std::size_t i, std::int64_t from, std::int64_t to, std::int64_t count) {
    std::copy_n(call.inputs[i] + from, count, call.output + to);
  });
}

template <class T>
void backward(const ReferenceCall<T>& call) {
  for_each_piece(call, [&](std::size_t i, std::int64_t to, std::int64_t from, std::int64_t count) {
    if (T* gradient = call.input_gradients[i])
      for (std::int64_t e = 0; e < count; ++e) gradient[to + e] += call.output_gradient[from + e];
  });
}

}  // namespace

const OpDef concat_op{
    .name = "concat",
    .infer = infer,
    .cost = cost,
    .forward = forward<float>,
    .backward = backward<float>,
    .forward_double = forward<double>,
    .backward_double = backward<double>,
};

}  // namespace regatta
