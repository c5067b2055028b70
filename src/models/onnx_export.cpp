#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "base/class_names.h"
#include "base/error.h"
#include "base/version.h"
#include "graph/op.h"
#include "models/onnx.h"
#include "ops/window.h"

namespace regatta {
namespace {

using Extents = std::vector<std::int64_t>;

class Exporter {
 public:
  Exporter(const Graph& graph, const Weights& weights) : graph_(graph), weights_(weights) {
    for (const Node& node : graph.nodes()) taken_.insert(node.name);
  }

  std::string text(const std::vector<std::string>& class_names) && {
    out_ = model_.mutable_graph();
    out_->set_name(graph_.name());
    value_info(out_->add_input(), "input", graph_.node(graph_.input()).shape);
    for (const Node& node : graph_.nodes())
      if (node.id != graph_.input() && node.id != graph_.loss()) add(node);
    value_info(out_->add_output(), value_of(graph_.logits()), graph_.node(graph_.logits()).shape);
    model_.set_producer_name("regatta");
    model_.set_producer_version(std::string(version));
    // Layer norm came with opset 17; everything else stays readable for older programs.
    model_.set_ir_version(needs_17_ ? 8 : 7);
    model_.add_opset_import()->set_version(needs_17_ ? 17 : 13);
    if (!class_names.empty()) {
      onnx::StringStringEntryProto* entry = model_.add_metadata_props();
      entry->set_key(class_names_key);
      entry->set_value(class_names_text(class_names));
    }
    return model_.SerializeAsString();
  }

 private:
  [[noreturn]] static void refuse(const Node& node, const std::string& what) {
    throw InputError(std::string(node.op->name) + " '" + node.name + "': ONNX cannot express " +
                     what);
  }

  // --- values ---

  static void value_info(onnx::ValueInfoProto* info, const std::string& name, const Shape& sample) {
    info->set_name(name);
    onnx::TypeProto::Tensor* type = info->mutable_type()->mutable_tensor_type();
    type->set_elem_type(onnx::TensorProto::FLOAT);
    type->mutable_shape()->add_dim()->set_dim_param("batch");
    for (const std::int64_t extent : sample.extents())
      type->mutable_shape()->add_dim()->set_dim_value(extent);
  }

  // The last value is called logits, unless a layer is.
  std::string value_of(NodeId id) const {
    return id == graph_.logits() && !taken_.contains("logits") ? "logits" : graph_.node(id).name;
  }

  std::string fresh(std::string name) {
    while (!taken_.insert(name).second) name += "_";
    return name;
  }

  // --- tensors ---

  std::string tensor(const std::string& name, const Extents& extents,
                     const std::vector<float>& values) {
    onnx::TensorProto* tensor = out_->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    for (const std::int64_t extent : extents) tensor->add_dims(extent);
    tensor->set_raw_data(values.data(), values.size() * sizeof(float));
    return name;
  }

  std::string scalar(const Node& node, const std::string& what, double value) {
    return tensor(fresh(node.name + "." + what), {}, {static_cast<float>(value)});
  }

  std::string weight(const Parameter& parameter) {
    const auto found = weights_.find(parameter.name);
    const auto elements = static_cast<std::size_t>(parameter.shape.elements());
    if (found == weights_.end() || found->second.size() != elements)
      throw InputError("there is no weight '" + parameter.name + "' of " + parameter.shape.text() +
                       " to export");
    const auto extents = parameter.shape.extents();
    return tensor(parameter.name, {extents.begin(), extents.end()}, found->second);
  }

  void add_parameters(const Node& node, onnx::NodeProto* to) {
    for (const ParameterId id : node.parameters) to->add_input(weight(graph_.parameter(id)));
  }

  // --- nodes ---

  onnx::NodeProto* op(const char* type, const std::string& name,
                      const std::vector<std::string>& inputs, const std::string& output) {
    onnx::NodeProto* node = out_->add_node();
    node->set_op_type(type);
    node->set_name(name);
    for (const std::string& input : inputs) node->add_input(input);
    node->add_output(output);
    return node;
  }

  // The node that makes `node`'s value of all it reads.
  onnx::NodeProto* op(const char* type, const Node& node) {
    std::vector<std::string> inputs;
    for (const NodeId input : node.inputs) inputs.push_back(value_of(input));
    return op(type, node.name, inputs, value_of(node.id));
  }

  static void set(onnx::NodeProto* node, const char* name, std::int64_t value) {
    onnx::AttributeProto* attribute = node->add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::INT);
    attribute->set_i(value);
  }
  static void set(onnx::NodeProto* node, const char* name, double value) {
    onnx::AttributeProto* attribute = node->add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::FLOAT);
    attribute->set_f(static_cast<float>(value));
  }
  static void set(onnx::NodeProto* node, const char* name, const Extents& values) {
    onnx::AttributeProto* attribute = node->add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::INTS);
    for (const std::int64_t value : values) attribute->add_ints(value);
  }

  static void set(onnx::NodeProto* node, const char* name, const std::string& value) {
    onnx::AttributeProto* attribute = node->add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::STRING);
    attribute->set_s(value);
  }

  static Extents numbers(Extent extent) { return {extent.height, extent.width}; }
  static Extents pads_of(const Window& window) {
    return {window.padding.height, window.padding.width, window.padding_after.height,
            window.padding_after.width};
  }

  void add(const Node& node) {
    if (node.attributes.flag("relu")) throw Error("'" + node.name + "' is fused");
    const std::string_view name = node.op->name;
    if (name == "conv") return add_conv(node);
    if (name == "dense") return add_dense(node);
    if (name == "batch_norm") return add_batch_norm(node);
    if (name == "layer_norm") return add_layer_norm(node);
    if (name == "max_pool") return add_max_pool(node);
    if (name == "average_pool") return add_average_pool(node);
    if (name == "adaptive_average_pool") return add_adaptive_pool(node);
    if (name == "global_average_pool") return add_global_pool(node);
    if (name == "local_response_norm") return add_local_response_norm(node);
    if (name == "gelu") return add_gelu(node);
    if (name == "dropout") return add_dropout(node);
    if (name == "flatten") return set(op("Flatten", node), "axis", std::int64_t{1});
    if (name == "concat") return set(op("Concat", node), "axis", std::int64_t{1});
    if (name == "leaky_relu")
      return set(op("LeakyRelu", node), "alpha", node.attributes.real("slope", 0.01));
    if (name == "relu6") {
      const std::string least = scalar(node, "min", 0), most = scalar(node, "max", 6);
      onnx::NodeProto* clip = op("Clip", node);
      clip->add_input(least);
      clip->add_input(most);
      return;
    }
    for (const auto& [ours, theirs] :
         {std::pair{"relu", "Relu"}, {"sigmoid", "Sigmoid"}, {"tanh", "Tanh"}, {"add", "Add"}})
      if (name == ours) {
        op(theirs, node);
        return;
      }
    refuse(node, "this operator");
  }

  void add_conv(const Node& node) {
    onnx::NodeProto* conv = op("Conv", node);
    add_parameters(node, conv);
    const Window window = window_of(node, 1);
    set(conv, "dilations", numbers(window.dilation));
    set(conv, "group", node.attributes.integer("groups", 1));
    set(conv, "kernel_shape", numbers(window.kernel));
    set(conv, "pads", pads_of(window));
    set(conv, "strides", numbers(window.stride));
  }

  void add_dense(const Node& node) {
    onnx::NodeProto* gemm = op("Gemm", node);
    add_parameters(node, gemm);
    set(gemm, "transB", std::int64_t{1});
  }

  void add_batch_norm(const Node& node) {
    onnx::NodeProto* norm = op("BatchNormalization", node);
    add_parameters(node, norm);
    for (const StateId id : node.states)
      if (!graph_.state(id).name.ends_with(".num_batches_tracked"))
        norm->add_input(weight(graph_.state(id)));
    set(norm, "epsilon", node.attributes.real("epsilon", 1e-5));
    set(norm, "momentum", 1 - node.attributes.real("momentum", 0.1));
  }

  void add_layer_norm(const Node& node) {
    onnx::NodeProto* norm = op("LayerNormalization", node);
    add_parameters(node, norm);
    set(norm, "axis", std::int64_t{1});
    set(norm, "epsilon", node.attributes.real("epsilon", 1e-5));
    needs_17_ = true;
  }

  // ONNX's ceil_mode also counts a last window that lies in the padding alone, PyTorch's does not;
  // where they differ, padding that lets the same windows fit says it.
  bool set_pool(onnx::NodeProto* pool, const Node& node) {
    const Window window = window_of(node, 0);
    const Shape& in = graph_.node(node.inputs[0]).shape;
    Extents pads = pads_of(window);
    bool ceil = node.attributes.flag("ceil");
    const std::int64_t size[] = {in.height(), in.width()};
    const std::int64_t places[] = {node.shape.height(), node.shape.width()};
    const Extents kernel = numbers(window.kernel), stride = numbers(window.stride),
                  dilation = numbers(window.dilation);
    bool alike = true;
    Extents wide = pads;
    for (std::size_t i = 0; i < 2; ++i) {
      const std::int64_t reach = (kernel[i] - 1) * dilation[i] + 1;
      const std::int64_t room = size[i] + pads[i] + pads[i + 2] - reach;
      alike &= (room + stride[i] - 1) / stride[i] + 1 == places[i];
      wide[i + 2] = std::max(pads[i + 2], (places[i] - 1) * stride[i] + reach - size[i] - pads[i]);
    }
    if (ceil && !alike) {
      pads = wide;
      ceil = false;
    }
    set(pool, "ceil_mode", std::int64_t{ceil});
    set(pool, "kernel_shape", kernel);
    set(pool, "pads", pads);
    set(pool, "strides", stride);
    return ceil == node.attributes.flag("ceil");
  }

  void add_max_pool(const Node& node) {
    onnx::NodeProto* pool = op("MaxPool", node);
    set_pool(pool, node);
    set(pool, "dilations", numbers(window_of(node, 0).dilation));
  }

  void add_average_pool(const Node& node) {
    onnx::NodeProto* pool = op("AveragePool", node);
    const bool as_it_was = set_pool(pool, node);
    const std::int64_t count = node.attributes.integer("count_padding", 1);
    if (!as_it_was && count != 0) refuse(node, "its last windows; leave out \"ceil\"");
    set(pool, "count_include_pad", count);
  }

  void add_global_pool(const Node& node) {
    const std::string pooled = fresh(node.name + ".pooled");
    op("GlobalAveragePool", pooled, {value_of(node.inputs[0])}, pooled);
    set(op("Flatten", node.name, {pooled}, value_of(node.id)), "axis", std::int64_t{1});
  }

  // Bins of one size are windows that tile the image; where there are more bins than pixels, each
  // pixel is repeated; where there are as many, nothing happens.
  void add_adaptive_pool(const Node& node) {
    const Shape& in = graph_.node(node.inputs[0]).shape;
    const auto divides = [](const Shape& larger, const Shape& smaller) {
      return larger.height() % smaller.height() == 0 && larger.width() % smaller.width() == 0;
    };
    if (in == node.shape) {
      op("Identity", node);
      return;
    }
    if (divides(node.shape, in)) {
      const auto scale = [](std::int64_t more, std::int64_t less) {
        return static_cast<float>(more / less);
      };
      const std::string scales = tensor(
          fresh(node.name + ".scales"), {4},
          {1, 1, scale(node.shape.height(), in.height()), scale(node.shape.width(), in.width())});
      onnx::NodeProto* repeat = op("Resize", node);
      repeat->add_input("");
      repeat->add_input(scales);
      set(repeat, "mode", std::string("nearest"));
      set(repeat, "coordinate_transformation_mode", std::string("asymmetric"));
      set(repeat, "nearest_mode", std::string("floor"));
      return;
    }
    if (divides(in, node.shape)) {
      const Extents bin{in.height() / node.shape.height(), in.width() / node.shape.width()};
      onnx::NodeProto* pool = op("AveragePool", node);
      set(pool, "kernel_shape", bin);
      set(pool, "strides", bin);
      return;
    }
    refuse(node, "bins of different sizes, from " + in.text() + " to " + node.shape.text() +
                     "; an --input that it divides can be exported");
  }

  void add_local_response_norm(const Node& node) {
    onnx::NodeProto* norm = op("LRN", node);
    set(norm, "alpha", node.attributes.real("alpha", 1e-4));
    set(norm, "beta", node.attributes.real("beta", 0.75));
    set(norm, "bias", node.attributes.real("k", 1));
    set(norm, "size", node.attributes.integer("size", 5));
  }

  void add_dropout(const Node& node) {
    const std::string ratio = scalar(node, "ratio", node.attributes.real("probability", 0.5));
    op("Dropout", node)->add_input(ratio);
  }

  // ONNX has no gelu before opset 20, so it is spelled out: x / 2 * (1 + erf(x / sqrt 2)), or the
  // approximation by tanh.
  void add_gelu(const Node& node) {
    const std::string x = value_of(node.inputs[0]);
    const auto step = [&](const char* type, const char* what, const std::string& left,
                          const std::string& right) {
      const std::string name = fresh(node.name + "." + what);
      op(type, name, {left, right}, name);
      return name;
    };
    const auto apply = [&](const char* type, const std::string& to) {
      const std::string name = fresh(node.name + "." + type);
      op(type, name, {to}, name);
      return name;
    };
    std::string bend;
    if (node.attributes.flag("tanh")) {
      const std::string square = step("Mul", "square", x, x);
      const std::string cube = step("Mul", "cube", square, x);
      const std::string small = step("Mul", "small", cube, scalar(node, "cubic", 0.044715));
      const std::string sum = step("Add", "sum", x, small);
      const double root = std::sqrt(2 / std::numbers::pi);
      bend = apply("Tanh", step("Mul", "scaled", sum, scalar(node, "root", root)));
    } else {
      bend = apply("Erf", step("Div", "scaled", x, scalar(node, "root", std::numbers::sqrt2)));
    }
    const std::string gate = step("Add", "gate", bend, scalar(node, "one", 1));
    const std::string product = step("Mul", "product", x, gate);
    const std::string half = scalar(node, "half", 0.5);
    op("Mul", node.name, {product, half}, value_of(node.id));
  }

  const Graph& graph_;
  const Weights& weights_;
  std::set<std::string> taken_;  // names of values
  onnx::ModelProto model_;
  onnx::GraphProto* out_ = nullptr;
  bool needs_17_ = false;
};

}  // namespace

std::string write_onnx(const Graph& graph, const Weights& weights,
                       const std::vector<std::string>& class_names) {
  return Exporter(graph, weights).text(class_names);
}

}  // namespace regatta
