#include <onnx/onnx_pb.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "models/onnx.h"
#include "models/onnx_names.h"

namespace regatta {
namespace {

constexpr std::int64_t batch_mark = INT64_MIN;  // the open batch in a shape that nodes compute

// What no window exceeds; so that no sum of sizes overflows.
bool fits(std::int64_t extent) { return extent >= -(1 << 15) && extent <= 1 << 15; }

bool near(float value, double wanted) { return std::abs(value - wanted) < 1e-4; }

class Importer : private OnnxNames {
 public:
  Importer(const onnx::ModelProto& model, const std::optional<Shape>& input)
      : OnnxNames(model, input) {
    mark_needed();
    find_gelus();
  }

  OnnxModel model() && {
    for (const onnx::NodeProto& node : in_.node())
      if (needed_.contains(&node) && !absorbed_.contains(&node)) add(OnnxNode(node));
    const auto logits = values_.find(in_.output(0).name());
    if (logits == values_.end())
      throw InputError("nothing makes the output '" + in_.output(0).name() + "'");
    builder_.add(cross_entropy_op, "loss", {logits->second.id}, {});
    OnnxModel out{std::move(builder_).finish(), {}};
    for (const Parameter& parameter : out.graph.parameters()) take(parameter, out);
    for (const Parameter& state : out.graph.states()) take(state, out);
    return out;
  }

 private:
  // Only what leads to the output: exporters leave odds and ends behind.
  void mark_needed() {
    std::vector<std::string> open{in_.output(0).name()};
    while (!open.empty()) {
      const auto maker = makers_.find(open.back());
      open.pop_back();
      if (maker == makers_.end() || !needed_.insert(maker->second).second) continue;
      for (const std::string& name : maker->second->input()) open.push_back(name);
    }
  }

  // The constant among a node's two inputs if it is near `wanted`; then the other input's name.
  const std::string* beside(const onnx::NodeProto& node, double wanted) {
    for (int i = 0; i < node.input_size() && node.input_size() == 2; ++i) {
      const OnnxTensor* found = constant(node.input(i));
      if (found && !found->whole && found->size() == 1 && near(found->floats[0], wanted))
        return &node.input(1 - i);
    }
    return nullptr;
  }

  // gelu as exporters spell it out: x / sqrt 2, Erf, + 1, and products with x and 1/2 in either
  // order. The last product stands for all of it.
  void find_gelus() {
    for (const onnx::NodeProto& erf : in_.node()) {
      if (erf.op_type() != "Erf" || erf.input_size() != 1 || erf.output_size() != 1) continue;
      const onnx::NodeProto* scale = maker(erf.input(0), "Div");
      const std::string* x = scale ? beside(*scale, std::numbers::sqrt2) : nullptr;
      if (!scale && (scale = maker(erf.input(0), "Mul")))
        x = beside(*scale, std::numbers::sqrt2 / 2);
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

  // --- the operators, one function each ---

  using Handler = void (Importer::*)(const OnnxNode&);

  void add(const OnnxNode& node) {
    static const std::map<std::string, Handler> handlers{
        {"Add", &Importer::add_add},
        {"AveragePool", &Importer::add_average_pool},
        {"BatchNormalization", &Importer::add_batch_norm},
        {"Cast", &Importer::add_same},
        {"Clip", &Importer::add_clip},
        {"Concat", &Importer::add_concat},
        {"Constant", &Importer::add_constant},
        {"Conv", &Importer::add_conv},
        {"Dropout", &Importer::add_dropout},
        {"Flatten", &Importer::add_flatten},
        {"Gather", &Importer::add_gather},
        {"Gelu", &Importer::add_gelu},
        {"Gemm", &Importer::add_gemm},
        {"GlobalAveragePool", &Importer::add_global_pool},
        {"Identity", &Importer::add_same},
        {"LRN", &Importer::add_local_response_norm},
        {"LayerNormalization", &Importer::add_layer_norm},
        {"LeakyRelu", &Importer::add_leaky_relu},
        {"LogSoftmax", &Importer::add_softmax},
        {"MatMul", &Importer::add_matmul},
        {"MaxPool", &Importer::add_max_pool},
        {"Mul", &Importer::add_mul},
        {"Pad", &Importer::add_pad},
        {"ReduceMean", &Importer::add_reduce_mean},
        {"Relu", &Importer::add_relu},
        {"Reshape", &Importer::add_reshape},
        {"Resize", &Importer::add_resize},
        {"Shape", &Importer::add_shape},
        {"Sigmoid", &Importer::add_sigmoid},
        {"Softmax", &Importer::add_softmax},
        {"Squeeze", &Importer::add_squeeze},
        {"Sum", &Importer::add_add},
        {"Tanh", &Importer::add_tanh},
        {"Unsqueeze", &Importer::add_unsqueeze},
    };
    const auto found = handlers.find(node.type());
    const std::string& domain = node.proto().domain();
    if (found == handlers.end() || !(domain.empty() || domain == "ai.onnx"))
      node.fail("this operator is not supported; docs/models.md lists those that are");
    (this->*found->second)(node);
  }

  void add_relu(const OnnxNode& node) { add_plain(node, "relu"); }
  void add_sigmoid(const OnnxNode& node) { add_plain(node, "sigmoid"); }
  void add_tanh(const OnnxNode& node) { add_plain(node, "tanh"); }
  void add_leaky_relu(const OnnxNode& node) {
    add_plain(node, "leaky_relu", {{"slope", node.real("alpha", 0.01)}});
  }
  void add_gelu(const OnnxNode& node) {
    const bool by_tanh = node.text("approximate", "none") == "tanh";
    add_plain(node, "gelu", {{"tanh", std::int64_t{by_tanh}}});
  }
  void add_mul(const OnnxNode& node) {
    const auto found = gelus_.find(&node.proto());
    if (found == gelus_.end()) node.fail("products are not supported, but those of gelu");
    const OnnxValue* from = value(found->second);
    if (!from || from->padded()) node.fail("gelu of what is not a layer's value");
    define(node, {add_op(node, "gelu", unique(node.proto().name(), "gelu"), {from->id}, {})});
  }
  void add_dropout(const OnnxNode& node) {
    const double old_form = node.real("ratio", 0.5);
    add_plain(node, "dropout", {{"probability", scalar_input(node, 1, "ratio", old_form)}});
  }
  void add_clip(const OnnxNode& node) {
    constexpr double none = 3e38;
    const double least = scalar_input(node, 1, "least value", node.real("min", -none));
    const double most = scalar_input(node, 2, "largest value", node.real("max", none));
    if (least != 0 || (most != 6 && most < none))
      node.fail("only from 0 to 6 (relu6) and from 0 up (relu) are supported, found " +
                std::to_string(least) + " to " + std::to_string(most));
    add_plain(node, most == 6 ? "relu6" : "relu");
  }

  void add_constant(const OnnxNode& node) {
    if (node.proto().output_size() > 0) constant(node.proto().output(0));
  }
  // Types of numbers do not matter here, so a cast passes them on.
  void add_same(const OnnxNode& node) {
    if (!node.has_input(0)) node.fail("it lacks an input");
    if (const OnnxTensor* numbers = constant(node.proto().input(0))) return define(node, *numbers);
    define(node, OnnxValue(value_input(node, 0)));
  }
  // The loss takes logits; probabilities are what a file shows to people.
  void add_softmax(const OnnxNode& node) {
    const bool last =
        node.proto().output_size() == 1 && node.proto().output(0) == in_.output(0).name();
    if (!last) node.fail("it is supported as the last node alone");
    define(node, {plain_input(node, 0)});
  }

  void add_add(const OnnxNode& node) {
    if (node.proto().input_size() != 2) node.fail("it must have two inputs");
    const NodeId left = plain_input(node, 0), right = plain_input(node, 1);
    const std::string name = unique(node.proto().name(), "add");
    define(node, {add_op(node, "add", name, {left, right}, {})});
  }

  void add_concat(const OnnxNode& node) {
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

  // --- convolution, dense, norms ---

  // top, left, bottom, right; what the file leaves to auto_pad is computed.
  static Extents pads_of(const OnnxNode& node, const Shape& in, const Extents& kernel,
                         const Extents& stride, const Extents& dilation) {
    const std::string automatic = node.text("auto_pad", "NOTSET");
    if (automatic == "NOTSET") return node.list("pads", {0, 0, 0, 0});
    Extents pads{0, 0, 0, 0};
    if (automatic == "VALID") return pads;
    if (automatic != "SAME_UPPER" && automatic != "SAME_LOWER")
      node.fail("its auto_pad '" + automatic.substr(0, 40) + "' is unknown");
    const std::int64_t size[] = {in.height(), in.width()};
    for (std::size_t i = 0; i < 2; ++i) {
      if (stride[i] < 1 || stride[i] > 1 << 15 || !fits(kernel[i]) || !fits(dilation[i]))
        node.fail("its window is out of range");
      const std::int64_t places = (size[i] + stride[i] - 1) / stride[i];
      const std::int64_t all = std::max<std::int64_t>(
          (places - 1) * stride[i] + (kernel[i] - 1) * dilation[i] + 1 - size[i], 0);
      pads[i] = automatic == "SAME_UPPER" ? all / 2 : all - all / 2;
      pads[i + 2] = all - pads[i];
    }
    return pads;
  }

  // A pair where both sides are alike, as networks are usually written.
  static Extents short_form(const Extents& pads) {
    return pads[0] == pads[2] && pads[1] == pads[3] ? Extents{pads[0], pads[1]} : pads;
  }

  static Extents sum(const OnnxNode& node, Extents pads, const Extents& zeros) {
    for (std::size_t i = 0; i < pads.size(); ++i) {
      if (!fits(pads[i])) node.fail("its padding is out of range");
      pads[i] += zeros[i];
    }
    return pads;
  }

  void add_conv(const OnnxNode& node) {
    const OnnxValue from = value_input(node, 0);
    const Shape& in = image_input(node);
    const OnnxTensor& weight = float_input(node, 1, "weight");
    if (weight.extents.size() != 4)
      node.fail("its weight is " + weight.text() + "; only flat images are supported");
    const Extents kernel{weight.extents[2], weight.extents[3]};
    if (node.list("kernel_shape", kernel) != kernel)
      node.fail("its kernel_shape is not that of its weight");
    const Extents stride = node.list("strides", {1, 1}), dilation = node.list("dilations", {1, 1});
    const Extents pads = sum(node, pads_of(node, in, kernel, stride, dilation), from.zeros);
    const bool bias = node.has_input(2);
    const std::string name = layer_name(node, "conv", node.proto().input(1));
    hold(name + ".weight", weight.extents, weight.floats);
    if (bias) {
      const OnnxTensor& numbers = float_input(node, 2, "bias");
      hold(name + ".bias", numbers.extents, numbers.floats);
    }
    define(node, {add_op(node, "conv", name, {from.id},
                         {{"channels", weight.extents[0]},
                          {"kernel", kernel},
                          {"stride", stride},
                          {"padding", short_form(pads)},
                          {"dilation", dilation},
                          {"groups", node.integer("group", 1)},
                          {"bias", std::int64_t{bias}}})});
  }

  // Adds a dense layer; `weight` is inputs x features unless `transposed`.
  void dense(const OnnxNode& node, const OnnxTensor& weight, bool transposed,
             const std::string& weight_name, const OnnxTensor* bias, const std::string& output) {
    if (weight.extents.size() != 2)
      node.fail("its weight must be a matrix, found " + weight.text());
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
        node.fail("its bias must be " + std::to_string(features) + " floats, found " +
                  bias->text());
      hold(name + ".bias", {features}, bias->floats);
    }
    const NodeId from = plain_input(node, 0);
    values_[output] = {add_op(node, "dense", name, {from},
                              {{"features", features}, {"bias", std::int64_t{bias != nullptr}}})};
  }

  void add_gemm(const OnnxNode& node) {
    if (node.real("alpha", 1) != 1 || node.real("beta", 1) != 1 || node.integer("transA", 0) != 0)
      node.fail("only alpha 1, beta 1 and transA 0 are supported");
    if (node.proto().output_size() != 1) node.fail("it must have one output");
    const OnnxTensor* bias = node.has_input(2) ? &float_input(node, 2, "bias") : nullptr;
    dense(node, float_input(node, 1, "weight"), node.integer("transB", 0) != 0,
          node.proto().input(1), bias, node.proto().output(0));
  }

  // A bias added to the product belongs to the layer.
  void add_matmul(const OnnxNode& node) {
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

  void add_batch_norm(const OnnxNode& node) {
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

  void add_layer_norm(const OnnxNode& node) {
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

  void add_local_response_norm(const OnnxNode& node) {
    add_plain(node, "local_response_norm",
              {{"size", node.integer("size", 0)},
               {"alpha", node.real("alpha", 1e-4)},
               {"beta", node.real("beta", 0.75)},
               {"k", node.real("bias", 1)}});
  }

  // --- pooling ---

  Attributes window(const OnnxNode& node, const Extents& zeros) {
    const Shape& in = image_input(node);
    if (!node.find("kernel_shape")) node.fail("it lacks its kernel_shape");
    const Extents kernel = node.list("kernel_shape", {1, 1});
    const Extents stride = node.list("strides", {1, 1}), dilation = node.list("dilations", {1, 1});
    const Extents pads = sum(node, pads_of(node, in, kernel, stride, dilation), zeros);
    return {{"kernel", kernel},
            {"stride", stride},
            {"padding", short_form(pads)},
            {"ceil", std::int64_t{node.integer("ceil_mode", 0) != 0}}};
  }

  void add_max_pool(const OnnxNode& node) {
    const NodeId from = plain_input(node, 0);
    Attributes attributes = window(node, {0, 0, 0, 0});
    attributes.set("dilation", node.list("dilations", {1, 1}));
    const std::string name = unique(node.proto().name(), "max_pool");
    define(node, {add_op(node, "max_pool", name, {from}, std::move(attributes))});
  }

  void add_average_pool(const OnnxNode& node) {
    const OnnxValue from = value_input(node, 0);
    if (node.list("dilations", {1, 1}) != Extents{1, 1}) node.fail("dilation is not supported");
    Attributes attributes = window(node, from.zeros);
    // Zeros that another node lays around the image count as values.
    const bool count = from.padded() || node.integer("count_include_pad", 0) != 0;
    if (from.padded() && (attributes.flag("ceil") || node.list("pads", {0, 0, 0, 0}) != Extents(4)))
      node.fail("padding of its own, or ceil_mode, behind a Pad is not supported");
    attributes.set("count_padding", std::int64_t{count});
    const std::string name = unique(node.proto().name(), "average_pool");
    define(node, {add_op(node, "average_pool", name, {from.id}, std::move(attributes))});
  }

  // A mean over the image: a vector where it is flattened at once, else an image of one pixel.
  void pool_all(const OnnxNode& node, bool keeps_image) {
    image_input(node);
    const NodeId from = plain_input(node, 0);
    const std::string& output = node.proto().output_size() > 0 ? node.proto().output(0) : "";
    const auto readers = readers_.find(output);
    const bool flattened =
        readers != readers_.end() && output != in_.output(0).name() &&
        std::ranges::all_of(readers->second, [](const onnx::NodeProto* reader) {
          const std::string& type = reader->op_type();
          return type == "Flatten" || type == "Reshape" || type == "Squeeze" || type == "Shape";
        });
    if (flattened || !keeps_image) {
      const std::string name = unique(node.proto().name(), "global_average_pool");
      return define(node, {add_op(node, "global_average_pool", name, {from}, {})});
    }
    const std::string name = unique(node.proto().name(), "adaptive_average_pool");
    define(node,
           {add_op(node, "adaptive_average_pool", name, {from}, {{"output", Extents{1, 1}}})});
  }

  void add_global_pool(const OnnxNode& node) { pool_all(node, true); }

  void add_reduce_mean(const OnnxNode& node) {
    Extents axes = node.find("axes") || !node.has_input(1) ? node.list("axes", {0, 0})
                                                           : whole_input(node, 1, "axes");
    for (std::int64_t& axis : axes) axis += axis < 0 ? 4 : 0;
    std::ranges::sort(axes);
    if (axes != Extents{2, 3}) node.fail("only the mean over height and width is supported");
    pool_all(node, node.integer("keepdims", 1) != 0);
  }

  // Repeats pixels, as pooling to more bins than pixels does.
  void add_resize(const OnnxNode& node) {
    const Shape& in = image_input(node);
    const OnnxTensor& scales = float_input(node, 2, "scales");
    const auto factor = [&](std::size_t i) {
      const float scale = scales.size() == 4 ? scales.floats[i] : 0;
      const bool fine = scale >= 1 && scale <= 1 << 15 && scale == std::floor(scale);
      return fine ? static_cast<std::int64_t>(scale) : 0;
    };
    const bool nearest = node.text("mode", "nearest") == "nearest" &&
                         node.text("coordinate_transformation_mode", "") == "asymmetric" &&
                         node.text("nearest_mode", "") == "floor";
    if (!nearest || factor(0) != 1 || factor(1) != 1 || factor(2) < 1 || factor(3) < 1)
      node.fail("only the repetition of pixels is supported");
    add_plain(node, "adaptive_average_pool",
              {{"output", Extents{in.height() * factor(2), in.width() * factor(3)}}});
  }

  // Zeros around an image wait for the operator that reads it.
  void add_pad(const OnnxNode& node) {
    const OnnxValue from = value_input(node, 0);
    Extents pads;
    if (const onnx::AttributeProto* old_form = node.find("pads"))
      pads.assign(old_form->ints().begin(), old_form->ints().end());
    else
      pads = whole_input(node, 1, "pads");
    const double filler = scalar_input(node, 2, "value", node.real("value", 0));
    const bool zeros = node.text("mode", "constant") == "constant" && filler == 0;
    const bool inside =
        std::ranges::all_of(pads, [](std::int64_t each) { return each >= 0 && each <= 1 << 15; });
    if (!zeros || !inside || from.padded())
      node.fail("only padding with zeros, once, is supported");
    if (std::ranges::all_of(pads, [](std::int64_t each) { return each == 0; }))
      return define(node, OnnxValue(from));
    if (pads.size() != 8 || pads[0] != 0 || pads[1] != 0 || pads[4] != 0 || pads[5] != 0)
      node.fail("only the padding of height and width is supported");
    define(node, OnnxValue{from.id, {pads[2], pads[3], pads[6], pads[7]}});
  }

  // --- shapes ---

  void flatten(const OnnxNode& node) {
    const NodeId from = plain_input(node, 0);
    if (shape_of(from).rank() == 1) return define(node, {from});
    define(node, {add_op(node, "flatten", unique(node.proto().name(), "flatten"), {from}, {})});
  }

  void add_flatten(const OnnxNode& node) {
    const std::int64_t axis = node.integer("axis", 1);
    if (axis != 1 && axis != -shape_of(plain_input(node, 0)).rank())
      node.fail("only axis 1 is supported, found " + std::to_string(axis));
    flatten(node);
  }

  void add_reshape(const OnnxNode& node) {
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

  void add_squeeze(const OnnxNode& node) {
    if (node.has_input(0) && constant(node.proto().input(0))) return reshape_number(node, false);
    const Shape& shape = shape_of(plain_input(node, 0));
    if (shape.rank() == 3 && (shape.height() != 1 || shape.width() != 1))
      node.fail("only dropping height and width of 1 is supported");
    flatten(node);
  }

  void add_unsqueeze(const OnnxNode& node) {
    if (node.has_input(0) && constant(node.proto().input(0))) return reshape_number(node, true);
    node.fail("it is supported for shapes alone");
  }

  // Shapes that nodes compute, as some exporters flatten: lists of whole numbers.
  void reshape_number(const OnnxNode& node, bool to_list) {
    OnnxTensor numbers = *constant(node.proto().input(0));
    if (!numbers.whole || numbers.size() != 1)
      node.fail("it is supported for single numbers alone");
    numbers.extents = to_list ? Extents{1} : Extents{};
    define(node, std::move(numbers));
  }

  void add_shape(const OnnxNode& node) {
    const Shape& shape = shape_of(plain_input(node, 0));
    Extents numbers{batch_mark};
    numbers.insert(numbers.end(), shape.extents().begin(), shape.extents().end());
    define(node, OnnxTensor{{static_cast<std::int64_t>(numbers.size())}, true, {}, numbers});
  }

  void add_gather(const OnnxNode& node) {
    const Extents& list = whole_input(node, 0, "data");
    const OnnxTensor& index = constant_input(node, 1, "index");
    const auto size = static_cast<std::int64_t>(list.size());
    if (!index.whole || index.size() != 1 || index.integers[0] < -size || index.integers[0] >= size)
      node.fail("only one number of a shape can be picked");
    const std::int64_t at = index.integers[0] + (index.integers[0] < 0 ? size : 0);
    define(node, OnnxTensor{index.extents, true, {}, {list[static_cast<std::size_t>(at)]}});
  }

  void concat_numbers(const OnnxNode& node) {
    OnnxTensor all{{0}, true, {}, {}};
    for (int i = 0; i < node.proto().input_size(); ++i) {
      const Extents& more = whole_input(node, i, "inputs");
      all.integers.insert(all.integers.end(), more.begin(), more.end());
      if (all.integers.size() > 64) node.fail("such a long shape is not supported");
    }
    all.extents[0] = static_cast<std::int64_t>(all.integers.size());
    define(node, std::move(all));
  }

  std::set<const onnx::NodeProto*> needed_;
  std::set<const onnx::NodeProto*> absorbed_;            // into another node's operator
  std::map<const onnx::NodeProto*, std::string> gelus_;  // last product -> what gelu is of
};

}  // namespace

OnnxModel read_onnx(std::span<const std::byte> bytes, const std::optional<Shape>& input) {
  onnx::ModelProto model;
  constexpr std::size_t most = INT32_MAX;  // protobuf's limit
  if (bytes.size() > most || !model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    throw InputError("it is not an ONNX file");
  if (!model.has_graph()) throw InputError("it holds no network");
  return Importer(model, input).model();
}

}  // namespace regatta
