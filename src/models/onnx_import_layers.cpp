// Dense layers and norms.
#include <array>
#include <cmath>

#include "models/onnx_importer.h"

namespace regatta {

// Adds a dense layer; `weight` is inputs x features unless `transposed`.
void OnnxImporter::dense(const OnnxNode& node, const OnnxTensor& weight, bool transposed,
                         const std::string& weight_name, const OnnxTensor* bias,
                         const std::string& output) {
  if (weight.extents.size() != 2) node.fail("its weight must be a matrix, found " + weight.text());
  const std::int64_t features = weight.extents[transposed ? 0 : 1];
  const std::int64_t inputs = weight.extents[transposed ? 1 : 0];
  const std::string name = layer_name(node, "dense", weight_name);
  std::vector<float> numbers = weight.floats;
  if (!transposed)
    for (std::int64_t i = 0; i < inputs; ++i)
      for (std::int64_t o = 0; o < features; ++o)
        numbers[static_cast<std::size_t>(o * inputs + i)] =
            weight.floats[static_cast<std::size_t>(i * features + o)];
  hold(name + ".weight", {features, inputs}, std::move(numbers));
  if (bias) {
    if (bias->whole || static_cast<std::int64_t>(bias->size()) != features)
      node.fail("its bias must be " + std::to_string(features) + " floats, found " + bias->text());
    hold(name + ".bias", {features}, bias->floats);
  }
  const NodeId from = plain_input(node, 0);
  values_[output] = {add_op(node, "dense", name, {from},
                            {{"features", features}, {"bias", std::int64_t{bias != nullptr}}})};
}

void OnnxImporter::add_gemm(const OnnxNode& node) {
  if (node.real("alpha", 1) != 1 || node.real("beta", 1) != 1 || node.integer("transA", 0) != 0)
    node.fail("only alpha 1, beta 1 and transA 0 are supported");
  if (node.proto().output_size() != 1) node.fail("it must have one output");
  const OnnxTensor* bias = node.has_input(2) ? &float_input(node, 2, "bias") : nullptr;
  dense(node, float_input(node, 1, "weight"), node.integer("transB", 0) != 0, node.proto().input(1),
        bias, node.proto().output(0));
}

// A bias added to the product belongs to the layer.
void OnnxImporter::add_matmul(const OnnxNode& node) {
  if (node.proto().output_size() != 1) node.fail("it must have one output");
  const std::string& product = node.proto().output(0);
  const OnnxTensor& weight = float_input(node, 1, "weight");
  const onnx::NodeProto* sum = only_reader(product, "Add");
  const OnnxTensor* bias = nullptr;
  if (sum && sum->input_size() == 2 && sum->output_size() == 1)
    bias = constant(sum->input(sum->input(0) == product ? 1 : 0));
  if (bias) absorbed_.insert(sum);
  dense(node, weight, false, node.proto().input(1), bias, bias ? sum->output(0) : product);
}

void OnnxImporter::add_batch_norm(const OnnxNode& node) {
  const NodeId from = plain_input(node, 0);
  const std::string name =
      layer_name(node, "batch_norm", node.has_input(1) ? node.proto().input(1) : std::string());
  static constexpr std::array parts{".weight", ".bias", ".running_mean", ".running_var"};
  for (int i = 0; i < 4; ++i) {
    const OnnxTensor& numbers = float_input(node, i + 1, "statistics");
    hold(name + parts[static_cast<std::size_t>(i)], numbers.extents, numbers.floats);
  }
  hold(name + ".num_batches_tracked", {1}, {0});
  // ONNX says how much of the old statistics stays.
  const double moved = std::round((1 - node.real("momentum", 0.9)) * 1e6) / 1e6;
  define(node, {add_op(node, "batch_norm", name, {from},
                       {{"epsilon", node.real("epsilon", 1e-5)}, {"momentum", moved}})});
}

void OnnxImporter::add_layer_norm(const OnnxNode& node) {
  const NodeId from = plain_input(node, 0);
  const std::int64_t axis = node.integer("axis", -1);
  if (axis != 1 && axis != -shape_of(from).rank())
    node.fail("only the norm of whole samples (axis 1) is supported, found axis " +
              std::to_string(axis));
  const OnnxTensor& weight = float_input(node, 1, "scale");
  const std::string name = layer_name(node, "layer_norm", node.proto().input(1));
  hold(name + ".weight", weight.extents, weight.floats);
  const bool has_bias = node.has_input(2);
  hold(name + ".bias", weight.extents,
       has_bias ? float_input(node, 2, "bias").floats : std::vector<float>(weight.size()));
  define(node,
         {add_op(node, "layer_norm", name, {from}, {{"epsilon", node.real("epsilon", 1e-5)}})});
}

void OnnxImporter::add_local_response_norm(const OnnxNode& node) {
  add_plain(node, "local_response_norm",
            {{"size", node.integer("size", 0)},
             {"alpha", node.real("alpha", 1e-4)},
             {"beta", node.real("beta", 0.75)},
             {"k", node.real("bias", 1)}});
}

}  // namespace regatta
