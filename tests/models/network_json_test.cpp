#include "models/network_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/files.h"
#include "models/layer_table.h"
#include "models/models.h"
#include "ops/ops.h"
#include "support/error_text.h"
#include "support/places.h"
#include "support/same_graph.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* small_net = R"({
  "name": "small",
  "input": [1, 8, 8],
  "layers": [
    {"name": "conv", "op": "conv", "channels": 4, "kernel": 3, "padding": [1, 0]},
    {"op": "relu"},
    {"name": "bn", "op": "batch_norm", "epsilon": 0.001},
    {"name": "sum", "op": "add", "inputs": ["bn", "conv"]},
    {"op": "max_pool", "kernel": 2, "inputs": "sum"},
    {"op": "flatten"},
    {"name": "fc", "op": "dense", "features": 3, "bias": false}
  ]
})";

TEST(NetworkJson, ReadsLayersInOrder) {
  const Graph graph = graph_from_json(small_net);
  EXPECT_EQ(graph.name(), "small");
  EXPECT_EQ(graph.classes(), 3);
  std::vector<std::string> names;
  for (const Parameter& parameter : graph.parameters()) names.push_back(parameter.name);
  EXPECT_EQ(names, (std::vector<std::string>{"conv.weight", "conv.bias", "bn.weight", "bn.bias",
                                             "fc.weight"}));
  EXPECT_EQ(graph.nodes()[1].shape, (Shape{4, 8, 6}));
  EXPECT_EQ(graph.nodes()[2].name, "relu2");
  EXPECT_EQ(graph.nodes()[4].inputs, (std::vector{NodeId{3}, NodeId{1}}));
  EXPECT_EQ(graph.nodes()[3].attributes.real("epsilon", 0), 0.001);
}

TEST(NetworkJson, TakesImagesOfAnotherSize) {
  const Graph graph = graph_from_json(small_net, Shape{1, 16, 16});
  EXPECT_EQ(graph.nodes()[0].shape, (Shape{1, 16, 16}));
  EXPECT_EQ(graph.nodes()[1].shape, (Shape{4, 16, 14}));
}

TEST(NetworkJson, IsTheSameAfterExportAndImport) {
  expect_same_graph(graph_from_json(network_text(graph_from_json(small_net))),
                    graph_from_json(small_net));
}

TEST(NetworkJson, GivesTheWholeZooBack) {
  for (const std::string& name : model_names()) {
    const Graph graph = build_model(name);
    expect_same_graph(graph_from_json(network_text(graph)), graph);
  }
}

// What the reader says about a network of one layer that is given as `layer`.
std::string complaint(const std::string& layer) {
  return error_text([&] {
    graph_from_json(R"({"name": "net", "input": [3, 8, 8], "layers": [)" + layer + "]}");
  });
}

TEST(NetworkJson, NamesTheLayerAndItsFault) {
  EXPECT_EQ(complaint(R"({"name": "a", "op": "konv", "channels": 4})"),
            "layer 'a': operator 'konv' is unknown (did you mean 'conv'?)");
  EXPECT_EQ(complaint(R"({"op": "relu"}, {"channels": 4})"),
            "layer 2: it needs an 'op', such as conv or relu");
  EXPECT_EQ(
      complaint(R"({"name": "a", "op": "max_pool", "kernal": 3})"),
      "max_pool 'a': it has no attribute 'kernal' (did you mean 'kernel'?): it takes name, "
      "op, inputs, kernel, stride, padding, dilation, ceil; max_pool 'a': it needs 'kernel', a "
      "whole number from 1 to 32768, or two for height and width");
  EXPECT_EQ(complaint(R"({"name": "a", "op": "conv", "kernel": 3})"),
            "conv 'a': it needs 'channels', a whole number from 1 to 16777216");
  EXPECT_EQ(complaint(R"({"op": "conv", "channels": 4, "kernel": "3"})"),
            "conv (layer 1): 'kernel' must be a whole number from 1 to 32768, or two for height "
            "and width, found \"3\"");
  EXPECT_EQ(complaint(R"({"name": "a", "op": "conv", "channels": 4, "kernel": 9})"),
            "conv 'a': kernel 9x9 is larger than its padded input 8x8");
  EXPECT_EQ(complaint(R"({"name": "a", "op": "dense", "features": 4})"),
            "dense 'a': its input must be a vector, found 3x8x8; flatten it first");
  EXPECT_EQ(complaint(R"({"op": "conv", "channels": 4, "kernel": 1, "init": "he"})"),
            "conv (layer 1): 'init' must be one of usual, he_normal_out, he_normal_in, "
            "he_uniform_in, normal, found \"he\"");
  EXPECT_EQ(complaint(R"({"op": "conv", "channels": 4, "kernel": 1, "bias": 1})"),
            "conv (layer 1): 'bias' must be true or false, found 1");
  EXPECT_EQ(complaint(R"(3)"), "layer 1 must be an object such as {\"op\": \"relu\"}, found 3");
}

TEST(NetworkJson, NamesAnInputThatIsNotThere) {
  const std::string flat = R"({"name": "flat", "op": "flatten"}, )";
  EXPECT_EQ(complaint(flat + R"({"name": "a", "op": "relu", "inputs": "flatt"})"),
            "relu 'a': its input \"flatt\" does not exist (did you mean 'flat'?)");
  EXPECT_EQ(complaint(R"({"name": "a", "op": "relu", "inputs": "b"},
                         {"name": "b", "op": "relu", "inputs": "a"})"),
            "relu 'a': its input 'b' comes later; a layer stands after all it reads");
  EXPECT_EQ(complaint(R"({"name": "a", "op": "relu", "inputs": "a"})"),
            "relu 'a': it reads itself");
  EXPECT_EQ(complaint(flat + R"({"name": "flat", "op": "relu"})"),
            "relu 'flat': the name is taken");
  EXPECT_THAT(complaint(R"({"name": "a", "op": "relu"}, {"op": "flatten", "inputs": "input"},
                           {"name": "fc", "op": "dense", "features": 2})"),
              HasSubstr("nothing reads 'a'"));
}

TEST(NetworkJson, TellsEveryMistakeOnce) {
  // What reads a layer with a mistake, by name or because it follows it, is not blamed for that.
  EXPECT_EQ(complaint(R"({"name": "a", "op": "konv"},
                         {"op": "relu"},
                         {"name": "b", "op": "conv", "kernel": "3", "kernal": 3},
                         {"name": "c", "op": "add", "inputs": ["a", "b"]},
                         {"name": "d", "op": "relu", "inputs": "nobody"},
                         {"name": "e", "op": "dense", "features": 4, "inputs": "input"},
                         {"op": "relu", "inputs": "relu2"},
                         7)"),
            "layer 'a': operator 'konv' is unknown (did you mean 'conv'?); "
            "conv 'b': 'kernel' must be a whole number from 1 to 32768, or two for height and "
            "width, found \"3\"; "
            "conv 'b': it has no attribute 'kernal' (did you mean 'kernel'?): it takes name, op, "
            "inputs, channels, kernel, stride, padding, dilation, groups, bias, init, "
            "init_deviation, init_zero_bias; "
            "conv 'b': it needs 'channels', a whole number from 1 to 16777216; "
            "relu 'd': its input \"nobody\" does not exist; "
            "dense 'e': its input must be a vector, found 3x8x8; flatten it first; "
            "layer 8 must be an object such as {\"op\": \"relu\"}, found 7");
}

TEST(NetworkJson, OfVeryManyMistakesTellsTheFirst) {
  std::string layers = "1";
  for (int i = 0; i < 99; ++i) layers += ", 1";
  EXPECT_THAT(complaint(layers), testing::EndsWith("found 1; layers behind that were not read"));
  EXPECT_LT(complaint(layers).size(), 2000u);
}

TEST(NetworkJson, IsWholeAndNotTooDeep) {
  const auto fault = [](const std::string& text) {
    return error_text([&] { graph_from_json(text); });
  };
  EXPECT_EQ(fault(R"({"name": "net")"), "it is not valid JSON: it breaks off at byte 15");
  EXPECT_EQ(fault("[]"), "a network is an object with name, input, layers");
  EXPECT_EQ(fault(R"({"name": "net", "imput": [1]})"),
            "a network has no 'imput' (did you mean 'input'?): it has name, input and layers; "
            "a network needs an 'input' such as [3, 32, 32], found none; "
            "a network needs 'layers', a list of them");
  EXPECT_EQ(fault(R"({"name": "net", "name": "ten"})"),
            "a layer or the network says \"name\" twice");
  EXPECT_EQ(fault(std::string(100'000, '[')), "it is nested more than 6 deep");
  EXPECT_EQ(fault(R"({"name": "../net", "input": [1], "layers": [{"op": "relu"}]})"),
            "a network needs a 'name' that a folder could have, found \"../net\"");
  EXPECT_EQ(fault(R"({"name": "n", "input": [3, 0, 8], "layers": [{"op": "relu"}]})"),
            "a network needs an 'input' such as [3, 32, 32], found [3,0,8]");
  EXPECT_EQ(fault(R"({"name": "n", "input": [1], "layers": []})"),
            "a network needs 'layers', a list of them");
}

TEST(NetworkJson, SizesThatWouldOverflowAreRefused) {
  EXPECT_THAT(complaint(R"({"op": "conv", "channels": 99999999999, "kernel": 1})"),
              StartsWith("conv (layer 1): 'channels' must be a whole number"));
  EXPECT_THAT(complaint(R"({"op": "conv", "channels": 4, "kernel": 1, "padding": 1e300})"),
              StartsWith("conv (layer 1): 'padding' must be"));
  EXPECT_THAT(complaint(R"({"op": "conv", "channels": 4, "kernel": 1, "padding": -1})"),
              StartsWith("conv (layer 1): 'padding' must be"));
  EXPECT_EQ(complaint(R"({"name": "a", "op": "conv", "channels": 16777216, "kernel": 1,
                          "padding": 30000})"),
            "conv 'a': its value of 16777216x60008x60008 is too large: at most 2147483647 numbers");
  EXPECT_EQ(complaint(R"({"op": "flatten"}, {"name": "a", "op": "dense", "features": 16777216})"),
            "dense 'a': its weight of 16777216x192 is too large: at most 2147483647 numbers");
  EXPECT_EQ(error_text([] {
              graph_from_json(R"({"name": "n", "input": [4000000, 4000000, 2],
                                  "layers": [{"op": "relu"}]})");
            }),
            "a network needs an 'input' such as [3, 32, 32], found [4000000,4000000,2]");
}

// The schema is what editors check against; it must know what the reader knows.
TEST(NetworkJson, TheSchemaHasTheReadersTable) {
  const Json schema = read_json(test_files() / "schemas/model.schema.json");
  std::set<std::string> offered, known;
  for (const Json& each : schema.at("properties").at("layers").at("items").at("oneOf"))
    offered.insert(each.at("$ref").get<std::string>().substr(std::string("#/$defs/").size()));
  for (const LayerRow& row : layer_rows()) {
    known.insert(std::string(row.op));
    const Json& layer = schema.at("$defs").at(std::string(row.op));
    std::set<std::string> properties, attributes{"op", "name", "inputs"};
    for (const auto& [name, value] : layer.at("properties").items()) properties.insert(name);
    std::set<std::string> required{"op"};
    for (const AttributeRow& attribute : row.attributes) {
      attributes.insert(std::string(attribute.name));
      if (attribute.required) required.insert(std::string(attribute.name));
    }
    EXPECT_EQ(properties, attributes) << row.op;
    EXPECT_EQ(layer.at("required").get<std::set<std::string>>(), required) << row.op;
  }
  EXPECT_EQ(offered, known);
}

TEST(NetworkJson, EveryRowIsAnOperator) {
  for (const LayerRow& row : layer_rows()) EXPECT_EQ(op_named(row.op).name, row.op);
}

}  // namespace
}  // namespace regatta
