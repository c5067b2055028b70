// Which algorithm convolutions are computed by.
#include "backends/cpu/conv.h"

#include <gtest/gtest.h>

#include "backends/cpu/cpu_backend.h"
#include "parity/formula.h"
#include "support/executor_run.h"
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

// Winograd's kernels take a chunk of more than 16,384 pixels in pieces: this one of 5 samples as 2,
// 2 and 1.
TEST(Conv, ThePiecesOfAChunkOfManyPixelsJoin) {
  constexpr std::int64_t side = 96, samples = 5;
  const ConvSettings settings{.channels = 32, .kernel = 3, .padding = 1};
  if (algorithm_of(settings, 32, side, samples) != winograd)
    GTEST_SKIP() << "oneDNN 2 has Winograd's kernels for AVX-512 alone";
  const Graph graph = build({"pieces", {3, side, side}, [&](NetBuilder& n) {
                               const NodeId x = n.relu(n.conv("a", n.input(), settings));
                               return head(n, n.global_average_pool(n.conv("b", x, settings)));
                             }});
  const ReferenceInput<float> input = make_input<float>(graph, samples);
  const auto run = [&](std::int64_t chunks) {
    PlanOptions options;
    options.chunks = {chunks};
    return execute(graph, plan_for(graph, samples, options), input, {}, 1);
  };
  const ExecutedRun whole = run(1), single = run(samples);
  EXPECT_LT(relative_distance(whole.logits, single.logits), 1e-5);
  for (std::size_t p = 0; p < whole.gradients.size(); ++p)
    EXPECT_LT(relative_distance(whole.gradients[p], single.gradients[p]), 1e-3)
        << graph.parameters()[p].name;
}

TEST(Conv, TakesTheDirectAlgorithmWhereWinogradHasNone) {
  EXPECT_EQ(algorithm_of({.channels = 40, .kernel = 5, .padding = 2}, 40, 16, 8), direct);
  EXPECT_EQ(algorithm_of({.channels = 40, .kernel = 3, .stride = 2}, 40, 64, 8), direct);
  EXPECT_EQ(algorithm_of({.channels = 40, .kernel = 3, .dilation = 2}, 40, 24, 8), direct);
  EXPECT_EQ(algorithm_of({.channels = 64, .kernel = 3, .groups = 2}, 64, 24, 8), direct);
}

}  // namespace
}  // namespace regatta::cpu
