// Nodes that flatten, and those that compute the shape to flatten to.
#include <algorithm>

#include "models/onnx_importer.h"

namespace regatta {
namespace {

constexpr std::int64_t batch_mark = INT64_MIN;  // the open batch in a shape that nodes compute

}  // namespace

void OnnxImporter::flatten(const OnnxNode& node) {
  const NodeId from = plain_input(node, 0);
  if (shape_of(from).rank() == 1) return define(node, {from});
  define(node, {add_op(node, "flatten", unique(node.proto().name(), "flatten"), {from}, {})});
}

void OnnxImporter::add_flatten(const OnnxNode& node) {
  const std::int64_t axis = node.integer("axis", 1);
  if (axis != 1 && axis != -shape_of(plain_input(node, 0)).rank())
    node.fail("only axis 1 is supported, found " + std::to_string(axis));
  flatten(node);
}

void OnnxImporter::add_reshape(const OnnxNode& node) {
  if (node.has_input(0) && constant(node.proto().input(0)))
    node.fail("reshaping constants is not supported");
  const NodeId from = plain_input(node, 0);
  const Extents& to = whole_input(node, 1, "shape");
  const std::int64_t elements = shape_of(from).elements();
  const bool two = to.size() == 2;
  const bool keeps_batch =
      two && (to[0] == 0 || to[0] == batch_mark || (batch_ && to[0] == *batch_) ||
              (to[0] == -1 && to[1] == elements));
  const bool rest =
      two && (to[1] == elements || to[1] == -1 || (to[1] == 0 && shape_of(from).rank() == 1));
  if (!keeps_batch || !rest)
    node.fail("only flattening is supported: batch x " + std::to_string(elements));
  flatten(node);
}

void OnnxImporter::add_squeeze(const OnnxNode& node) {
  if (node.has_input(0) && constant(node.proto().input(0))) return reshape_number(node, false);
  const Shape& shape = shape_of(plain_input(node, 0));
  if (shape.rank() == 3 && (shape.height() != 1 || shape.width() != 1))
    node.fail("only dropping height and width of 1 is supported");
  flatten(node);
}

void OnnxImporter::add_unsqueeze(const OnnxNode& node) {
  if (node.has_input(0) && constant(node.proto().input(0))) return reshape_number(node, true);
  node.fail("it is supported for shapes alone");
}

// Shapes that nodes compute, as some exporters flatten: lists of whole numbers.
void OnnxImporter::reshape_number(const OnnxNode& node, bool to_list) {
  OnnxTensor numbers = *constant(node.proto().input(0));
  if (!numbers.whole || numbers.size() != 1) node.fail("it is supported for single numbers alone");
  numbers.extents = to_list ? Extents{1} : Extents{};
  define(node, std::move(numbers));
}

void OnnxImporter::add_shape(const OnnxNode& node) {
  const Shape& shape = shape_of(plain_input(node, 0));
  Extents numbers{batch_mark};
  numbers.insert(numbers.end(), shape.extents().begin(), shape.extents().end());
  // Newer files ask for a part of it; places count from the end if they are negative.
  const auto rank = static_cast<std::int64_t>(numbers.size());
  const auto place = [&](const char* name, std::int64_t otherwise) {
    const std::int64_t at = std::clamp(node.integer(name, otherwise), -rank, rank);
    return at < 0 ? at + rank : at;
  };
  const std::int64_t begin = place("start", 0), end = std::max(place("end", rank), begin);
  numbers = Extents(numbers.begin() + begin, numbers.begin() + end);
  define(node, OnnxTensor{{static_cast<std::int64_t>(numbers.size())}, true, {}, numbers});
}

void OnnxImporter::add_gather(const OnnxNode& node) {
  const Extents& list = whole_input(node, 0, "data");
  const OnnxTensor& index = constant_input(node, 1, "index");
  const auto size = static_cast<std::int64_t>(list.size());
  if (!index.whole || index.size() != 1 || index.integers[0] < -size || index.integers[0] >= size)
    node.fail("only one number of a shape can be picked");
  const std::int64_t at = index.integers[0] + (index.integers[0] < 0 ? size : 0);
  define(node, OnnxTensor{index.extents, true, {}, {list[static_cast<std::size_t>(at)]}});
}

void OnnxImporter::concat_numbers(const OnnxNode& node) {
  OnnxTensor all{{0}, true, {}, {}};
  for (int i = 0; i < node.proto().input_size(); ++i) {
    const Extents& more = whole_input(node, i, "inputs");
    all.integers.insert(all.integers.end(), more.begin(), more.end());
    if (all.integers.size() > 64) node.fail("such a long shape is not supported");
  }
  all.extents[0] = static_cast<std::int64_t>(all.integers.size());
  define(node, std::move(all));
}

}  // namespace regatta
