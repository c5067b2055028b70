// What the names of an ONNX file stand for, while its network is made node by node: values of the
// graph, or constant numbers. Internal to the import.
#pragma once

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "graph/op.h"
#include "models/layer_table.h"
#include "models/onnx.h"
#include "models/onnx_node.h"
#include "models/onnx_tensor.h"
#include "ops/ops.h"

namespace regatta {

// What a name of the file stands for: a value of the graph, perhaps with zeros to be laid around
// it, or constant numbers.
struct OnnxValue {
  NodeId id{};
  std::vector<std::int64_t> zeros{0, 0, 0, 0};  // top, left, bottom, right

  bool padded() const { return zeros != std::vector<std::int64_t>{0, 0, 0, 0}; }
};

class OnnxNames {
 protected:
  using Extents = std::vector<std::int64_t>;

  OnnxNames(const onnx::ModelProto& model, const std::optional<Shape>& input,
            std::filesystem::path folder)
      : in_(model.graph()), builder_(plain_name(in_.name())), folder_(std::move(folder)) {
    constexpr int most_nodes = 20'000;
    if (in_.node_size() > most_nodes)
      throw InputError("a network of " + std::to_string(in_.node_size()) + " nodes is too large");
    for (const onnx::TensorProto& tensor : in_.initializer()) tensors_[tensor.name()] = &tensor;
    for (const onnx::NodeProto& node : in_.node()) {
      for (const std::string& name : node.input()) readers_[name].push_back(&node);
      for (const std::string& name : node.output())
        if (!name.empty() && !makers_.emplace(name, &node).second)
          throw InputError(OnnxNode(node).culprit() + ": '" + name + "' is made twice");
    }
    if (in_.output_size() != 1)
      throw InputError("the network has " + std::to_string(in_.output_size()) +
                       " outputs; it needs one, the logits");
    add_input(input);
  }

  const onnx::NodeProto* maker(const std::string& name, const char* type) const {
    const auto found = makers_.find(name);
    return found != makers_.end() && found->second->op_type() == type ? found->second : nullptr;
  }
  const onnx::NodeProto* only_reader(const std::string& name, const char* type) const {
    const auto found = readers_.find(name);
    const bool one = found != readers_.end() && found->second.size() == 1;
    return one && found->second[0]->op_type() == type ? found->second[0] : nullptr;
  }

  // --- what names stand for ---

  // Numbers of that name; null if it is not a constant.
  const OnnxTensor* constant(const std::string& name) {
    if (const auto found = constants_.find(name); found != constants_.end()) return &found->second;
    if (const auto found = tensors_.find(name); found != tensors_.end())
      return &(constants_[name] =
                   unpack(*found->second, "tensor '" + name.substr(0, 200) + "'", folder_));
    const onnx::NodeProto* node = maker(name, "Constant");
    if (!node) return nullptr;
    const OnnxNode view(*node);
    if (const onnx::AttributeProto* value = view.find("value"))
      return &(constants_[name] = unpack(value->t(), view.culprit(), folder_));
    if (const onnx::AttributeProto* value = view.find("value_float"))
      return &(constants_[name] = {{}, false, {value->f()}, {}});
    if (const onnx::AttributeProto* value = view.find("value_int"))
      return &(constants_[name] = {{}, true, {}, {value->i()}});
    if (const onnx::AttributeProto* value = view.find("value_ints"))
      return &(constants_[name] = {
                   {value->ints_size()}, true, {}, {value->ints().begin(), value->ints().end()}});
    view.fail("it holds no numbers");
  }

  const OnnxTensor& constant_input(const OnnxNode& node, int index, const char* what) {
    const OnnxTensor* found = node.has_input(index) ? constant(node.proto().input(index)) : nullptr;
    if (!found) node.fail(std::string("its ") + what + " must be a constant of the file");
    return *found;
  }
  const OnnxTensor& float_input(const OnnxNode& node, int index, const char* what) {
    const OnnxTensor& found = constant_input(node, index, what);
    if (found.whole) node.fail(std::string("its ") + what + " must be of type float");
    return found;
  }
  const Extents& whole_input(const OnnxNode& node, int index, const char* what) {
    const OnnxTensor& found = constant_input(node, index, what);
    if (!found.whole) node.fail(std::string("its ") + what + " must be whole numbers");
    return found.integers;
  }
  double scalar_input(const OnnxNode& node, int index, const char* what, double otherwise) {
    if (!node.has_input(index)) return otherwise;
    const OnnxTensor& found = float_input(node, index, what);
    if (found.size() != 1) node.fail(std::string("its ") + what + " must be one number");
    return decimal(found.floats[0]);
  }

  const OnnxValue* value(const std::string& name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? nullptr : &found->second;
  }
  const OnnxValue& value_input(const OnnxNode& node, int index) {
    const OnnxValue* found = node.has_input(index) ? value(node.proto().input(index)) : nullptr;
    if (found) return *found;
    if (!node.has_input(index)) node.fail("it lacks an input");
    const std::string name = node.proto().input(index).substr(0, 200);
    if (constant(node.proto().input(index)))
      node.fail("it reads the constant '" + name + "' where only a layer's value is supported");
    node.fail("it reads '" + name + "', which nothing before it makes");
  }
  NodeId plain_input(const OnnxNode& node, int index) {
    const OnnxValue& found = value_input(node, index);
    if (found.padded())
      node.fail("it reads a padded image; Pad is supported before Conv and AveragePool");
    return found.id;
  }
  const Shape& shape_of(NodeId id) const { return builder_.node(id).shape; }
  const Shape& image_input(const OnnxNode& node) {
    const Shape& shape = shape_of(value_input(node, 0).id);
    if (shape.rank() != 3) node.fail("its input must be an image, found " + shape.text());
    return shape;
  }

  void define(const OnnxNode& node, OnnxValue made) {
    if (node.proto().output_size() < 1) node.fail("it has no output");
    values_[node.proto().output(0)] = std::move(made);
  }
  void define(const OnnxNode& node, OnnxTensor numbers) {
    if (node.proto().output_size() < 1) node.fail("it has no output");
    constants_[node.proto().output(0)] = std::move(numbers);
  }

  // --- adding operators ---

  std::string unique(std::string wanted, const std::string& otherwise) {
    if (wanted.empty() || wanted.size() > 150) wanted = otherwise;
    std::string name = wanted;
    for (int i = 2; !names_.insert(name).second; ++i) name = wanted + "_" + std::to_string(i);
    return name;
  }

  // Layers take the name their weights have, as PyTorch gives it: "features.0" of
  // "features.0.weight".
  std::string layer_name(const OnnxNode& node, const char* op, const std::string& weight) {
    static constexpr std::string_view ending = ".weight";
    if (weight.ends_with(ending) && weight.size() > ending.size())
      return unique(weight.substr(0, weight.size() - ending.size()), op);
    return unique(node.proto().name(), op);
  }

  NodeId add_op(const OnnxNode& node, const char* op, const std::string& name,
                std::vector<NodeId> inputs, Attributes attributes) {
    for (const AttributeRow& row : layer_row(op)->attributes) require_range(node, row, attributes);
    return builder_.add(op_named(op), name, std::move(inputs), std::move(attributes));
  }

  static void require_range(const OnnxNode& node, const AttributeRow& row,
                            const Attributes& attributes) {
    const std::string name(row.name);
    const auto check = [&](double number) {
      if (row.form != AttributeForm::flag && row.form != AttributeForm::choice &&
          !(number >= row.least && number <= row.most))
        node.fail("its " + name + " of " + std::to_string(number) + " is out of range");
    };
    const auto found = attributes.values().find(name);
    if (found == attributes.values().end()) return;
    if (const auto* list = std::get_if<Extents>(&found->second))
      for (const std::int64_t each : *list) check(static_cast<double>(each));
    else
      check(attributes.real(name, 0));
  }

  void add_plain(const OnnxNode& node, const char* op, Attributes attributes = {}) {
    const NodeId from = plain_input(node, 0);
    define(node,
           {add_op(node, op, unique(node.proto().name(), op), {from}, std::move(attributes))});
  }

  void hold(const std::string& name, Extents extents, std::vector<float> numbers) {
    weights_[name] = {std::move(extents), false, std::move(numbers), {}};
  }

  void take(const Parameter& parameter, OnnxModel& to) {
    const auto found = weights_.find(parameter.name);
    const auto wanted = parameter.shape.extents();
    if (found == weights_.end()) throw InputError("the file lacks '" + parameter.name + "'");
    if (!std::ranges::equal(found->second.extents, wanted))
      throw InputError("'" + parameter.name + "' is " + found->second.text() +
                       " in the file, its layer needs " + parameter.shape.text());
    to.weights[parameter.name] = std::move(found->second.floats);
  }

  const onnx::GraphProto& in_;
  GraphBuilder builder_;
  std::unordered_map<std::string, std::vector<const onnx::NodeProto*>> readers_;
  std::unordered_map<std::string, const onnx::NodeProto*> makers_;
  std::unordered_map<std::string, OnnxTensor> constants_;
  std::unordered_map<std::string, OnnxValue> values_;
  std::map<std::string, OnnxTensor> weights_;  // by the parameter's name
  std::optional<std::int64_t> batch_;          // if the file fixes it

 private:
  // It becomes part of the run folder's name.
  static std::string plain_name(std::string name) {
    for (char& c : name)
      if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '-') c = '_';
    return name.empty() ? "onnx" : name.substr(0, 60);
  }

  void add_input(const std::optional<Shape>& instead) {
    const onnx::ValueInfoProto* input = nullptr;
    for (const onnx::ValueInfoProto& each : in_.input()) {
      if (tensors_.contains(each.name())) continue;  // old files list the weights, too
      if (input)
        throw InputError("the network has inputs '" + input->name() + "' and '" + each.name() +
                         "'; it needs one, the images");
      input = &each;
    }
    if (!input) throw InputError("the network has no input");
    const std::string culprit = "input '" + input->name() + "'";
    const onnx::TypeProto::Tensor& type = input->type().tensor_type();
    if (type.elem_type() != onnx::TensorProto::FLOAT)
      throw InputError(culprit + ": it must be of type float");
    const auto& dims = type.shape().dim();
    Extents extents;
    double elements = 1;
    for (int i = 1; i < dims.size(); ++i) {
      const std::int64_t extent = dims[i].dim_value();
      extents.push_back(extent);
      elements *= static_cast<double>(extent);
      if (extent < 1 || extent > 1 << 24 || elements > 1 << 30) elements = 1e300;
    }
    if (instead) {
      extents.assign(instead->extents().begin(), instead->extents().end());
    } else if ((dims.size() != 2 && dims.size() != 4) || elements > 1 << 30) {
      throw InputError(culprit +
                       ": it must be batch x channels x height x width; give what the "
                       "file leaves open with --input, such as --input 3x224x224");
    }
    if (dims.size() > 0 && dims[0].has_dim_value()) batch_ = dims[0].dim_value();
    values_[input->name()] = {builder_.add(input_op, "input", {}, {{"shape", extents}})};
  }

  std::filesystem::path folder_;  // for numbers that the file keeps outside
  std::unordered_map<std::string, const onnx::TensorProto*> tensors_;
  std::set<std::string> names_{"input", "loss"};  // of layers
};

}  // namespace regatta
