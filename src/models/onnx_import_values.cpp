// Nodes that work on values one by one, join them or pass them on.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "models/onnx_importer.h"

namespace regatta {
namespace {

bool near(float value, double wanted) { return std::abs(value - wanted) < 1e-4; }

}  // namespace

// The constant among a node's two inputs if it is near `wanted`; then the other input's name.
const std::string* OnnxImporter::beside(const onnx::NodeProto& node, double wanted) {
  for (int i = 0; i < node.input_size() && node.input_size() == 2; ++i) {
    const OnnxTensor* found = constant(node.input(i));
    if (found && !found->whole && found->size() == 1 && near(found->floats[0], wanted))
      return &node.input(1 - i);
  }
  return nullptr;
}

// gelu as exporters spell it out: x / sqrt 2, Erf, + 1, and products with x and 1/2 in either
// order. The last product stands for all of it.
void OnnxImporter::find_gelus() {
  for (const onnx::NodeProto& erf : in_.node()) {
    if (erf.op_type() != "Erf" || erf.input_size() != 1 || erf.output_size() != 1) continue;
    const onnx::NodeProto* scale = maker(erf.input(0), "Div");
    const std::string* x = scale ? beside(*scale, std::numbers::sqrt2) : nullptr;
    if (!scale && (scale = maker(erf.input(0), "Mul"))) x = beside(*scale, std::numbers::sqrt2 / 2);
    const onnx::NodeProto* gate = only_reader(erf.output(0), "Add");
    if (!x || !gate || !beside(*gate, 1) || gate->output_size() != 1) continue;
    const onnx::NodeProto* product = only_reader(gate->output(0), "Mul");
    if (!product || product->input_size() != 2 || product->output_size() != 1) continue;
    const std::string& other = product->input(product->input(0) == gate->output(0) ? 1 : 0);
    const onnx::NodeProto* last = nullptr;
    const onnx::NodeProto* halved = maker(other, "Mul");
    if (other == *x) {
      last = only_reader(product->output(0), "Mul");
      if (!last || !beside(*last, 0.5) || last->output_size() != 1) continue;
      absorbed_.insert(product);
    } else if (const std::string* same = halved ? beside(*halved, 0.5) : nullptr;
               same && *same == *x && only_reader(other, "Mul")) {
      last = product;
      absorbed_.insert(halved);
    } else {
      continue;
    }
    absorbed_.insert({scale, &erf, gate});
    gelus_[last] = *x;
  }
}

void OnnxImporter::add_relu(const OnnxNode& node) { add_plain(node, "relu"); }
void OnnxImporter::add_sigmoid(const OnnxNode& node) { add_plain(node, "sigmoid"); }
void OnnxImporter::add_tanh(const OnnxNode& node) { add_plain(node, "tanh"); }
void OnnxImporter::add_leaky_relu(const OnnxNode& node) {
  add_plain(node, "leaky_relu", {{"slope", node.real("alpha", 0.01)}});
}
void OnnxImporter::add_gelu(const OnnxNode& node) {
  const bool by_tanh = node.text("approximate", "none") == "tanh";
  add_plain(node, "gelu", {{"tanh", std::int64_t{by_tanh}}});
}
void OnnxImporter::add_mul(const OnnxNode& node) {
  const auto found = gelus_.find(&node.proto());
  if (found == gelus_.end()) node.fail("products are not supported, but those of gelu");
  const OnnxValue* from = value(found->second);
  if (!from || from->padded()) node.fail("gelu of what is not a layer's value");
  define(node, {add_op(node, "gelu", unique(node.proto().name(), "gelu"), {from->id}, {})});
}
void OnnxImporter::add_dropout(const OnnxNode& node) {
  const double old_form = node.real("ratio", 0.5);
  add_plain(node, "dropout", {{"probability", scalar_input(node, 1, "ratio", old_form)}});
}
void OnnxImporter::add_clip(const OnnxNode& node) {
  constexpr double none = 3e38;
  const double least = scalar_input(node, 1, "least value", node.real("min", -none));
  const double most = scalar_input(node, 2, "largest value", node.real("max", none));
  if (least != 0 || (most != 6 && most < none))
    node.fail("only from 0 to 6 (relu6) and from 0 up (relu) are supported, found " +
              std::to_string(least) + " to " + std::to_string(most));
  add_plain(node, most == 6 ? "relu6" : "relu");
}

void OnnxImporter::add_constant(const OnnxNode& node) {
  if (node.proto().output_size() > 0) constant(node.proto().output(0));
}
// Types of numbers do not matter here, so a cast passes them on.
void OnnxImporter::add_same(const OnnxNode& node) {
  if (!node.has_input(0)) node.fail("it lacks an input");
  if (const OnnxTensor* numbers = constant(node.proto().input(0))) return define(node, *numbers);
  define(node, OnnxValue(value_input(node, 0)));
}
// The loss takes logits; probabilities are what a file shows to people.
void OnnxImporter::add_softmax(const OnnxNode& node) {
  const bool last =
      node.proto().output_size() == 1 && node.proto().output(0) == in_.output(0).name();
  if (!last) node.fail("it is supported as the last node alone");
  define(node, {plain_input(node, 0)});
}

void OnnxImporter::add_add(const OnnxNode& node) {
  if (node.proto().input_size() != 2) node.fail("it must have two inputs");
  const NodeId left = plain_input(node, 0), right = plain_input(node, 1);
  const std::string name = unique(node.proto().name(), "add");
  define(node, {add_op(node, "add", name, {left, right}, {})});
}

void OnnxImporter::add_concat(const OnnxNode& node) {
  if (node.has_input(0) && constant(node.proto().input(0))) return concat_numbers(node);
  std::vector<NodeId> open;
  for (int i = 0; i < node.proto().input_size(); ++i) open.push_back(plain_input(node, i));
  if (open.empty()) node.fail("it has no inputs");
  const std::int64_t axis = node.integer("axis", 1);
  if (axis != 1 && axis != -shape_of(open[0]).rank())
    node.fail("only along channels (axis 1) is supported, found axis " + std::to_string(axis));
  // An operator reads a few values at most: the first ones become one.
  constexpr std::size_t at_once = 8;
  while (open.size() > 1) {
    const std::size_t count = std::min(open.size(), at_once);
    const std::vector<NodeId> first(open.begin(), open.begin() + static_cast<long>(count));
    const std::string name = unique(node.proto().name(), "concat");
    open.erase(open.begin(), open.begin() + static_cast<long>(count - 1));
    open[0] = add_op(node, "concat", name, first, {});
  }
  define(node, {open[0]});
}

}  // namespace regatta
