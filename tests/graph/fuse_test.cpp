#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>

#include "graph/graph.h"
#include "graph/op.h"
#include "ops/builder.h"
#include "parity/formula.h"
#include "support/reference_run.h"

namespace regatta {
namespace {

constexpr ConvSettings plain_conv{.channels = 4, .kernel = 3, .padding = 1, .bias = false};

// Stem, then one residual block whose shortcut is, or is not, a convolution of its own.
Graph residual_net(bool downsample) {
  NetBuilder net("block", {3, 6, 5});
  const NodeId x = net.relu(net.batch_norm("stem.bn", net.conv("stem", net.input(), plain_conv)));
  NodeId shortcut = x;
  if (downsample)
    shortcut = net.batch_norm("down.bn", net.conv("down", x, {.channels = 4, .bias = false}));
  NodeId branch = net.relu(net.batch_norm("bn1", net.conv("conv1", x, plain_conv)));
  branch = net.batch_norm("bn2", net.conv("conv2", branch, plain_conv));
  const NodeId sum = net.relu(net.add(branch, shortcut));
  const NodeId logits = net.dense("fc", net.global_average_pool(sum), 3);
  return std::move(net).finish(logits);
}

// "conv1 <- stem.bn": the node and what it reads; "+relu" where it took one in.
std::vector<std::string> described(const Graph& graph) {
  std::vector<std::string> lines;
  for (const Node& node : graph.nodes()) {
    std::string line = node.name + (node.attributes.flag("relu") ? "+relu" : "");
    for (const NodeId input : node.inputs) line += " <- " + graph.node(input).name;
    lines.push_back(line);
  }
  return lines;
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected,
                 const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], 1e-12 * (1 + std::abs(expected[i]))) << what << " " << i;
}

void expect_same_numbers(const Graph& graph) {
  const Graph fused = fuse(graph);
  const auto expected = reference_run(graph, make_input<double>(graph, 3));
  const auto found = reference_run(fused, make_input<double>(fused, 3));
  expect_near(found.losses, expected.losses, "losses");
  ASSERT_EQ(fused.parameters().size(), graph.parameters().size());
  for (std::size_t i = 0; i < graph.parameters().size(); ++i) {
    EXPECT_EQ(fused.parameters()[i].name, graph.parameters()[i].name);
    expect_near(found.parameter_gradients[i], expected.parameter_gradients[i],
                graph.parameters()[i].name);
  }
  ASSERT_EQ(fused.states().size(), graph.states().size());
  for (std::size_t i = 0; i < graph.states().size(); ++i)
    expect_near(found.states[i], expected.states[i], graph.states()[i].name);
}

TEST(Fuse, ANormTakesInTheShortcutAndTheRelu) {
  EXPECT_EQ(described(fuse(residual_net(false))),
            (std::vector<std::string>{
                "input", "stem <- input", "stem.bn+relu <- stem", "conv1 <- stem.bn",
                "bn1+relu <- conv1", "conv2 <- bn1", "bn2+relu <- conv2 <- stem.bn",
                "global_average_pool11 <- bn2", "fc <- global_average_pool11", "loss <- fc"}));
}

TEST(Fuse, TheShortcutMayBeANormOfItsOwn) {
  EXPECT_EQ(
      described(fuse(residual_net(true))),
      (std::vector<std::string>{
          "input", "stem <- input", "stem.bn+relu <- stem", "down <- stem.bn", "down.bn <- down",
          "conv1 <- stem.bn", "bn1+relu <- conv1", "conv2 <- bn1", "bn2+relu <- conv2 <- down.bn",
          "global_average_pool13 <- bn2", "fc <- global_average_pool13", "loss <- fc"}));
}

TEST(Fuse, KeepsTheNumbers) {
  expect_same_numbers(residual_net(false));
  expect_same_numbers(residual_net(true));
}

TEST(Fuse, ConvolutionsAndDenseLayersTakeInRelus) {
  NetBuilder net("plain", {2, 7, 5});
  NodeId x = net.relu(net.conv("conv", net.input(), plain_conv));
  x = net.relu(net.dense("fc1", x, 5));
  x = net.dense("fc2", x, 3);
  const Graph graph = std::move(net).finish(x);
  EXPECT_EQ(described(fuse(graph)),
            (std::vector<std::string>{"input", "conv+relu <- input", "flatten3 <- conv",
                                      "fc1+relu <- flatten3", "fc2 <- fc1", "loss <- fc2"}));
  expect_same_numbers(graph);
}

TEST(Fuse, PoolsAConvolutionBeforeItsRelu) {
  NetBuilder net("pooled", {2, 9, 7});
  NodeId x = net.relu(net.conv("conv", net.input(), plain_conv));
  x = net.dense("fc", net.max_pool(x, {.kernel = 3, .stride = Extent(2), .padding = 1}), 3);
  const Graph graph = std::move(net).finish(x);
  EXPECT_EQ(
      described(fuse(graph)),
      (std::vector<std::string>{"input", "conv <- input", "max_pool3 <- conv", "relu2 <- max_pool3",
                                "flatten4 <- relu2", "fc <- flatten4", "loss <- fc"}));
  expect_same_numbers(graph);
}

TEST(Fuse, LeavesAReluWhoseInputIsReadElsewhere) {
  NetBuilder net("shared", {2, 5, 5});
  const NodeId conv = net.conv("conv", net.input(), plain_conv);
  const NodeId sum = net.add(net.relu(conv), conv);
  const NodeId logits = net.dense("fc", sum, 3);
  const Graph graph = std::move(net).finish(logits);
  EXPECT_EQ(fuse(graph).nodes().size(), graph.nodes().size());
  expect_same_numbers(graph);
}

TEST(Fuse, LeavesAnAdditionWhoseNormIsReadElsewhere) {
  NetBuilder net("shared", {2, 5, 5});
  const NodeId conv = net.conv("conv", net.input(), plain_conv);
  const NodeId norm = net.batch_norm("bn", conv);
  const NodeId sum = net.add(net.add(norm, conv), norm);
  const NodeId logits = net.dense("fc", sum, 3);
  const Graph graph = std::move(net).finish(logits);
  EXPECT_EQ(fuse(graph).nodes().size(), graph.nodes().size());
  expect_same_numbers(graph);
}

TEST(Fuse, FusingTwiceChangesNothingMore) {
  const Graph once = fuse(residual_net(true));
  EXPECT_EQ(described(fuse(once)), described(once));
}

}  // namespace
}  // namespace regatta
