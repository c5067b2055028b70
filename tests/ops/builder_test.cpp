#include "ops/builder.h"

#include <gtest/gtest.h>

#include <utility>

#include "graph/op.h"

namespace regatta {
namespace {

TEST(NetBuilder, BuildsWhatItIsTold) {
  NetBuilder net("small", {1, 9, 8});
  NodeId x = net.conv("conv", net.input(), {.channels = 2, .kernel = {3, 2}, .stride = {2, 1}});
  x = net.max_pool(net.relu(x), {.kernel = 2});
  const NodeId logits = net.dense("fc", x, 5);
  const Graph graph = std::move(net).finish(logits);
  EXPECT_EQ(graph.name(), "small");
  EXPECT_EQ(graph.node(NodeId{1}).shape, (Shape{2, 4, 7}));
  EXPECT_EQ(graph.node(NodeId{3}).shape, (Shape{2, 2, 3}));
  EXPECT_EQ(graph.classes(), 5);
  EXPECT_EQ(graph.node(graph.loss()).name, "loss");
}

TEST(NetBuilder, ADenseLayerFlattensAnImageButNotAVector) {
  NetBuilder net("small", {1, 4, 4});
  NodeId x = net.dense("fc1", net.input(), 6);
  x = net.dense("fc2", x, 3);
  const Graph graph = std::move(net).finish(x);
  std::vector<std::string> ops;
  for (const Node& node : graph.nodes()) ops.emplace_back(node.op->name);
  EXPECT_EQ(ops, (std::vector<std::string>{"input", "flatten", "dense", "dense", "cross_entropy"}));
}

TEST(NetBuilder, ConvolutionsHaveABiasUnlessToldOtherwise) {
  NetBuilder net("small", {1, 4, 4});
  NodeId x = net.conv("with", net.input(), {.channels = 2});
  x = net.conv("without", x, {.channels = 2, .bias = false});
  const NodeId logits = net.dense("fc", x, 2);
  const Graph graph = std::move(net).finish(logits);
  std::vector<std::string> names;
  for (const Parameter& parameter : graph.parameters()) names.push_back(parameter.name);
  EXPECT_EQ(names, (std::vector<std::string>{"with.weight", "with.bias", "without.weight",
                                             "fc.weight", "fc.bias"}));
}

}  // namespace
}  // namespace regatta
