// Through ONNX and back: the same numbers. What another program makes of the files is
// scripts/onnx-check's business.
#include "models/onnx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include "graph/op.h"
#include "models/models.h"
#include "models/shapes_by_name.h"
#include "ops/builder.h"
#include "parity/formula.h"
#include "support/error_text.h"
#include "support/reference_run.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

Weights weights_of(const Graph& graph, const ReferenceInput<double>& input) {
  Weights weights;
  for (std::size_t i = 0; i < graph.parameters().size(); ++i)
    weights[graph.parameters()[i].name] = {input.parameters[i].begin(), input.parameters[i].end()};
  for (std::size_t i = 0; i < graph.states().size(); ++i)
    weights[graph.states()[i].name] = {input.states[i].begin(), input.states[i].end()};
  return weights;
}

OnnxModel read(const std::string& bytes) { return read_onnx(std::as_bytes(std::span(bytes))); }

std::vector<double> logits_of(const Graph& graph, const ReferenceInput<double>& input) {
  return reference_run(graph, input, Pass::evaluate).values[graph.logits().value];
}

// The file must give the same logits as the graph it was written from, with the same weights under
// the same names.
OnnxModel expect_round_trip(const Graph& graph) {
  const ReferenceInput<double> input = make_input<double>(graph, 2);
  OnnxModel back = read(write_onnx(graph, weights_of(graph, input)));
  ReferenceInput<double> again = input;
  again.parameters.clear();
  again.states.clear();
  for (const Parameter& parameter : back.graph.parameters()) {
    const std::vector<float>& values = back.weights.at(parameter.name);
    again.parameters.emplace_back(values.begin(), values.end());
  }
  for (const Parameter& state : back.graph.states()) {
    const std::vector<float>& values = back.weights.at(state.name);
    again.states.emplace_back(values.begin(), values.end());
  }
  EXPECT_EQ(back.graph.parameters().size(), graph.parameters().size());
  for (const Parameter& parameter : graph.parameters())
    EXPECT_TRUE(back.weights.contains(parameter.name)) << parameter.name;
  const std::vector<double> wanted = logits_of(graph, input), found = logits_of(back.graph, again);
  EXPECT_EQ(wanted.size(), found.size());
  for (std::size_t i = 0; i < std::min(wanted.size(), found.size()); ++i)
    EXPECT_NEAR(found[i], wanted[i], 1e-5 * std::max(1.0, std::abs(wanted[i]))) << i;
  return back;
}

TEST(Onnx, KeepsClassNames) {
  const Graph graph = build_model("tiny");
  const Weights weights = weights_of(graph, make_input<double>(graph, 1));
  const std::vector<std::string> names{"a cat", "a \"dog\""};
  EXPECT_EQ(read(write_onnx(graph, weights, names)).class_names, names);
  EXPECT_TRUE(read(write_onnx(graph, weights)).class_names.empty());
  // More names than outputs are none.
  const std::vector<std::string> many(static_cast<std::size_t>(graph.classes()) + 1, "x");
  EXPECT_TRUE(read(write_onnx(graph, weights, many)).class_names.empty());
}

TEST(Onnx, EveryOperatorGoesThereAndBack) {
  NetBuilder net("everything", {4, 13, 11});
  NodeId x = net.conv("conv", net.input(),
                      {.channels = 6,
                       .kernel = {3, 2},
                       .stride = {1, 2},
                       .padding = {1, 0, 2, 1},
                       .dilation = {2, 1},
                       .groups = 2});
  x = net.gelu(net.batch_norm("norm", x, {.epsilon = 1e-3, .momentum = 0.2}));
  x = net.local_response_norm(x, {.size = 3, .alpha = 0.1});
  const NodeId left =
      net.leaky_relu(net.max_pool(x, {.kernel = 3, .stride = 2, .padding = 1, .ceil = true}), 0.2);
  const NodeId right = net.average_pool(
      x, {.kernel = 3, .stride = 2, .padding = 1, .ceil = true, .count_padding = false});
  x = net.concat({net.sigmoid(left), net.tanh(right), net.relu6(net.add(left, right))});
  x = net.dropout("drop", net.layer_norm("layer", x), 0.3);
  x = net.adaptive_average_pool(net.relu(x), {1, 1});
  x = net.adaptive_average_pool(x, {2, 3});
  x = net.dense("fc", x, 5, {.bias = false});
  const OnnxModel back = expect_round_trip(std::move(net).finish(x));
  for (const Node& node : back.graph.nodes()) {
    if (node.name == "drop") {
      EXPECT_EQ(node.attributes.real("probability", 0), 0.3);
    }
    if (node.name == "norm") {
      EXPECT_EQ(node.attributes.real("epsilon", 0), 1e-3);
      EXPECT_EQ(node.attributes.real("momentum", 0), 0.2);
    }
  }
}

TEST(Onnx, ModelsGoThereAndBack) {
  expect_round_trip(build_model("lenet5"));
  expect_round_trip(build_model("resnet20", {.input = Shape{3, 8, 8}}));
  expect_round_trip(build_model("squeezenet1_1", {.input = Shape{3, 34, 32}, .classes = 4}));
  expect_round_trip(build_model("mobilenet_v2", {.input = Shape{3, 8, 8}, .classes = 4}));
}

// Models with many more parameters are checked by scripts/onnx-check.
TEST(Onnx, TheZooKeepsItsNamesAndShapes) {
  for (const std::string& name : model_names()) {
    const Graph graph = build_model(name);
    if (summarise(graph).parameters > 12'000'000) continue;
    Weights weights;
    for (const auto* tensors : {&graph.parameters(), &graph.states()})
      for (const Parameter& each : *tensors)
        weights[each.name].resize(static_cast<std::size_t>(each.shape.elements()));
    const Graph back = read(write_onnx(graph, weights)).graph;
    EXPECT_EQ(shapes_by_name(back), shapes_by_name(graph)) << name;
  }
}

TEST(Onnx, BinsOfDifferentSizesAreRefused) {
  NetBuilder net("bins", {1, 5, 5});
  const NodeId x = net.dense("fc", net.adaptive_average_pool(net.input(), {2, 2}), 2);
  const Graph graph = std::move(net).finish(x);
  EXPECT_THAT(
      error_text([&] { write_onnx(graph, weights_of(graph, make_input<double>(graph, 1))); }),
      HasSubstr("ONNX cannot express bins of different sizes, from 1x5x5 to 1x2x2"));
}

// --- what other exporters write ------------------------------------------------------------------

// A file made by hand, node by node.
class File {
 public:
  explicit File(const std::vector<std::int64_t>& input, const char* output = "y") {
    graph_->set_name("made/by hand");
    auto* info = graph_->add_input();
    info->set_name("x");
    auto* type = info->mutable_type()->mutable_tensor_type();
    type->set_elem_type(onnx::TensorProto::FLOAT);
    type->mutable_shape()->add_dim()->set_dim_param("n");
    for (const std::int64_t extent : input) type->mutable_shape()->add_dim()->set_dim_value(extent);
    graph_->add_output()->set_name(output);
  }

  onnx::NodeProto& node(const char* type, const std::vector<const char*>& inputs,
                        const char* output) {
    onnx::NodeProto* node = graph_->add_node();
    node->set_op_type(type);
    node->set_name(std::string("the_") + type);
    for (const char* input : inputs) node->add_input(input);
    node->add_output(output);
    return *node;
  }
  onnx::TensorProto& floats(const char* name, const std::vector<std::int64_t>& extents) {
    onnx::TensorProto* tensor = graph_->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    std::int64_t count = 1;
    for (const std::int64_t extent : extents) {
      tensor->add_dims(extent);
      count *= extent;
    }
    for (std::int64_t i = 0; i < count; ++i) tensor->add_float_data(0.25f * static_cast<float>(i));
    return *tensor;
  }
  void scalar(const char* name, float value) { floats(name, {1}).set_float_data(0, value); }
  void integers(const char* name, const std::vector<std::int64_t>& values) {
    onnx::TensorProto* tensor = graph_->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::INT64);
    tensor->add_dims(static_cast<std::int64_t>(values.size()));
    for (const std::int64_t value : values) tensor->add_int64_data(value);
  }
  static void set(onnx::NodeProto& node, const char* name, std::int64_t value) {
    auto* attribute = node.add_attribute();
    attribute->set_name(name);
    attribute->set_i(value);
  }
  static void set(onnx::NodeProto& node, const char* name,
                  const std::vector<std::int64_t>& values) {
    auto* attribute = node.add_attribute();
    attribute->set_name(name);
    for (const std::int64_t value : values) attribute->add_ints(value);
  }

  // Ends with a dense layer on `from`, a vector of `features`.
  void dense(const char* from, std::int64_t features) {
    floats("fc.weight", {features, 3});
    floats("fc.bias", {3});
    node("MatMul", {from, "fc.weight"}, "product");
    node("Add", {"product", "fc.bias"}, "y");
  }

  std::string bytes() const { return model_.SerializeAsString(); }
  OnnxModel model() const { return read(bytes()); }
  std::string refusal() const {
    return error_text([&] { model(); });
  }

 private:
  onnx::ModelProto model_;
  onnx::GraphProto* graph_ = model_.mutable_graph();
};

std::vector<std::string> operators_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes()) names.emplace_back(node.op->name);
  return names;
}

TEST(OnnxImport, AProductAndABiasAreADenseLayer) {
  File file({2, 2, 2});
  file.node("Flatten", {"x"}, "flat");
  file.dense("flat", 8);
  const OnnxModel model = file.model();
  EXPECT_EQ(model.graph.name(), "made_by_hand");
  EXPECT_EQ(operators_of(model.graph),
            (std::vector<std::string>{"input", "flatten", "dense", "cross_entropy"}));
  // inputs x features in the file, features x inputs here.
  EXPECT_EQ(model.weights.at("fc.weight")[1], 0.75f);
  EXPECT_EQ(model.weights.at("fc.bias")[2], 0.5f);
}

TEST(OnnxImport, ComputedShapesAndMeansAreFlattening) {
  File file({2, 4, 4});
  File::set(file.node("ReduceMean", {"x"}, "mean"), "axes", std::vector<std::int64_t>{-1, -2});
  file.node("Shape", {"mean"}, "shape");
  file.integers("zero", {0});
  file.integers("rest", {-1});
  file.node("Gather", {"shape", "zero"}, "batch");
  File::set(file.node("Concat", {"batch", "rest"}, "to"), "axis", std::int64_t{0});
  file.node("Reshape", {"mean", "to"}, "flat");
  file.dense("flat", 2);
  EXPECT_EQ(operators_of(file.model().graph),
            (std::vector<std::string>{"input", "global_average_pool", "dense", "cross_entropy"}));
}

// As newer exporters write it.
TEST(OnnxImport, APartOfAShapeIsFlatteningToo) {
  File file({2, 4, 4});
  onnx::NodeProto& shape = file.node("Shape", {"x"}, "batch");
  File::set(shape, "start", std::int64_t{0});
  File::set(shape, "end", std::int64_t{-3});
  file.integers("rest", {32});
  File::set(file.node("Concat", {"batch", "rest"}, "to"), "axis", std::int64_t{0});
  file.node("Reshape", {"x", "to"}, "flat");
  file.dense("flat", 32);
  EXPECT_EQ(operators_of(file.model().graph),
            (std::vector<std::string>{"input", "flatten", "dense", "cross_entropy"}));
}

TEST(OnnxImport, ZerosAroundAnImageBelongToWhatReadsIt) {
  File file({1, 4, 4});
  file.integers("pads", {0, 0, 1, 2, 0, 0, 1, 2});
  file.node("Pad", {"x", "pads"}, "padded");
  File::set(file.node("AveragePool", {"padded"}, "pooled"), "kernel_shape",
            std::vector<std::int64_t>{2, 4});
  file.node("Flatten", {"pooled"}, "flat");
  file.dense("flat", 25);
  const Graph graph = file.model().graph;
  EXPECT_EQ(graph.nodes()[1].attributes, (Attributes{{"kernel", std::vector<std::int64_t>{2, 4}},
                                                     {"stride", std::vector<std::int64_t>{1, 1}},
                                                     {"padding", std::vector<std::int64_t>{1, 2}},
                                                     {"ceil", std::int64_t{0}},
                                                     {"count_padding", std::int64_t{1}}}));
}

TEST(OnnxImport, WhatIsNotSupportedIsNamed) {
  File file({1, 4, 4});
  file.node("HardSwish", {"x"}, "y");
  EXPECT_EQ(file.refusal(),
            "HardSwish 'the_HardSwish': this operator is not supported; docs/models.md lists those "
            "that are");
}

TEST(OnnxImport, WhatIsWrongIsNamed) {
  {
    File file({1, 4, 4});
    file.node("Relu", {"z"}, "y");
    EXPECT_EQ(file.refusal(), "Relu 'the_Relu': it reads 'z', which nothing before it makes");
  }
  {
    File file({1, 4, 4});
    file.node("Conv", {"x", "w"}, "y");
    file.floats("w", {2, 1, 3, 3}).mutable_float_data()->RemoveLast();
    EXPECT_EQ(file.refusal(), "tensor 'w': it does not hold the 18 numbers of 2x1x3x3");
  }
  {
    File file({1, 4, 4});
    File::set(file.node("Conv", {"x", "w"}, "y"), "pads",
              std::vector<std::int64_t>{INT64_MAX, 0, 0, 0});
    file.floats("w", {2, 1, 3, 3});
    EXPECT_EQ(file.refusal(), "Conv 'the_Conv': its padding is out of range");
  }
  {
    File file({1, 4, 4});
    file.floats("w", {2, 1, 3, 3});
    file.floats("b", {3});
    file.node("Conv", {"x", "w", "b"}, "c");
    file.node("Flatten", {"c"}, "y");
    EXPECT_EQ(file.refusal(), "'the_Conv.bias' is 3 in the file, its layer needs 2");
  }
  {
    File file({1, 4, 4});
    auto& tensor = file.floats("w", {});
    tensor.clear_dims();
    for (int i = 0; i < 4; ++i) tensor.add_dims(1LL << 40);
    file.node("Conv", {"x", "w"}, "y");
    EXPECT_THAT(file.refusal(), HasSubstr("tensor 'w': it is too large: 1099511627776x"));
  }
  EXPECT_EQ(error_text([] { read("not a protocol buffer"); }), "it is not an ONNX file");
  EXPECT_EQ(error_text([] { read(""); }), "it holds no network");
}

TEST(OnnxImport, SizesLeftOpenAreAskedFor) {
  const std::string bytes = [] {
    File file({1, 0, 0});
    file.node("Flatten", {"x"}, "flat");
    file.dense("flat", 16);
    return file.bytes();
  }();
  EXPECT_THAT(error_text([&] { read(bytes); }), HasSubstr("input 'x'"));
  EXPECT_EQ(read_onnx(std::as_bytes(std::span(bytes)), Shape{1, 4, 4}).graph.classes(), 3);
}

}  // namespace
}  // namespace regatta
