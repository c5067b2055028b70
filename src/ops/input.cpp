// The images, as the data room hands them over ("shape": channels x height x width).
#include <algorithm>

#include "ops/check.h"
#include "ops/ops.h"

namespace regatta {
namespace {

Shape infer(const Node& node, Shapes inputs) {
  require_inputs(node, inputs, 0);
  const auto& values = node.attributes.values();
  const auto found = values.find("shape");
  const auto* extents =
      found == values.end() ? nullptr : std::get_if<std::vector<std::int64_t>>(&found->second);
  if (!extents || extents->empty() || extents->size() > 3)
    fail(node, "it needs a 'shape' such as 3x32x32");
  const Shape shape{std::span<const std::int64_t>(*extents)};
  if (std::ranges::any_of(*extents, [](std::int64_t extent) { return extent <= 0; }))
    fail(node, "every extent of its shape must be at least 1, found " + shape.text());
  return shape;
}

// Pixels become numbers here: one multiply-add each; nothing is asked of backward.
Cost cost(const Node& node, Shapes) {
  return {.forward_flops = 2.0 * static_cast<double>(node.shape.elements())};
}

// The caller passes the images as inputs[0], though the node itself reads no other node.
template <class T>
void forward(const ReferenceCall<T>& call) {
  std::copy_n(call.inputs[0], call.n * call.node->shape.elements(), call.output);
}

}  // namespace

const OpDef input_op{
    .name = "input",
    .infer = infer,
    .cost = cost,
    .forward = forward<float>,
    .forward_double = forward<double>,
};

}  // namespace regatta
