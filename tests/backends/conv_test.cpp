// Which algorithm convolutions are computed by.
#include "backends/cpu/conv.h"

#include <gtest/gtest.h>

#include "backends/cpu/cpu_backend.h"
#include "support/small_networks.h"

namespace regatta::cpu {
namespace {

constexpr auto direct = dnnl::algorithm::convolution_direct;
constexpr auto winograd = dnnl::algorithm::convolution_winograd;

// The algorithm of the convolution "b" between `inputs` and `outputs` channels of images of `side`
// squared, for chunks of `samples`.
dnnl::algorithm algorithm_of(const ConvSettings& b, std::int64_t inputs, std::int64_t side,
                             std::int64_t samples) {
  const SmallNetwork network{
      "convs", {3, side, side}, [&](NetBuilder& n) {
        const NodeId x =
            n.conv("a", n.input(), {.channels = inputs, .kernel = 3, .padding = 1, .bias = false});
        return head(n, n.relu(n.conv("b", x, b)));
      }};
  const Graph graph = build(network);
  const std::vector<Layout> layouts = value_layouts(graph, preferred_layout());
  const Normalisation normalisation;
  for (const Node& node : graph.nodes())
    if (node.name == "b")
      return ConvFormats({graph, node, layouts, samples, normalisation}).algorithm;
  ADD_FAILURE() << "no convolution b";
  return direct;
}

TEST(Conv, TakesWinogradForManyPixelsAndChannels) {
  if (preferred_layout() != Layout::blocked16 || DNNL_VERSION_MAJOR > 2)
    GTEST_SKIP() << "oneDNN 2 has Winograd's kernels for AVX-512 alone";
  const ConvSettings three{.channels = 40, .kernel = 3, .padding = 1};
  EXPECT_EQ(algorithm_of(three, 40, 16, 2), winograd);
  EXPECT_EQ(algorithm_of(three, 40, 16, 1), direct) << "256 pixels";
  EXPECT_EQ(algorithm_of(three, 16, 16, 2), direct) << "16 channels";
}

TEST(Conv, TakesTheDirectAlgorithmWhereWinogradHasNone) {
  EXPECT_EQ(algorithm_of({.channels = 40, .kernel = 5, .padding = 2}, 40, 16, 8), direct);
  EXPECT_EQ(algorithm_of({.channels = 40, .kernel = 3, .stride = 2}, 40, 64, 8), direct);
  EXPECT_EQ(algorithm_of({.channels = 40, .kernel = 3, .dilation = 2}, 40, 24, 8), direct);
  EXPECT_EQ(algorithm_of({.channels = 64, .kernel = 3, .groups = 2}, 64, 24, 8), direct);
}

}  // namespace
}  // namespace regatta::cpu
