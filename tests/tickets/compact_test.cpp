// A compacted network has the logits of the masked one, and fewer channels.
#include "tickets/compact.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "models/models.h"
#include "ops/builder.h"
#include "support/reference_run.h"
#include "tickets/prune.h"
#include "train/weights.h"

namespace regatta::tickets {
namespace {

// Weights, norms' scales and shifts and running statistics away from their first values, so that
// nothing cancels by chance.
Weights lively_weights(const Graph& graph) {
  Weights weights = initial_weights(graph, 4);
  for (auto& [name, values] : weights) {
    const std::uint64_t stream = stream_of("lively " + name);
    const bool variance = name.ends_with("running_var");
    if (name.ends_with("num_batches_tracked")) continue;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float more = 2 * random_uniform(5, stream, i) - 1;
      values[i] = variance ? 1 + 0.5f * more : values[i] + 0.2f * more;
    }
  }
  return weights;
}

std::vector<double> logits(const Graph& graph, const Weights& weights) {
  ReferenceInput<double> input;
  for (const Parameter& parameter : graph.parameters()) {
    const std::vector<float>& values = weights.at(parameter.name);
    EXPECT_EQ(std::ssize(values), parameter.shape.elements()) << parameter.name;
    input.parameters.emplace_back(values.begin(), values.end());
  }
  for (const Parameter& state : graph.states()) {
    const std::vector<float>& values = weights.at(state.name);
    EXPECT_EQ(std::ssize(values), state.shape.elements()) << state.name;
    input.states.emplace_back(values.begin(), values.end());
  }
  constexpr std::int64_t samples = 3;
  const auto elements = static_cast<std::size_t>(graph.node(graph.input()).shape.elements());
  for (std::size_t i = 0; i < samples * elements; ++i)
    input.images.push_back(2.0 * static_cast<double>(random_uniform(6, 7, i)) - 1);
  input.labels.assign(samples, 0);
  return reference_run(graph, input, Pass::evaluate).values[graph.logits().value];
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(a[i] - b[i]));
    size = std::max(size, std::abs(b[i]));
  }
  return most / size;
}

// Compacts by this mask and compares; gives what is left.
Compacted expect_equal(const Graph& network, const Mask& mask) {
  Weights weights = lively_weights(network);
  const Compacted small = compact(network, weights, mask);
  zero_masked(mask, weights);
  const std::vector<double> whole = logits(network, weights);
  // The folded constants are rounded to float.
  EXPECT_LT(distance(logits(small.network, small.weights), whole), 1e-5) << network.name();
  require_fit(small.mask, small.network, "compact");
  Weights masked = small.weights;
  zero_masked(small.mask, masked);
  EXPECT_EQ(masked, small.weights) << "the mask hides weights that count";
  return small;
}

Mask pruned(const Graph& network, double keep, Scope scope) {
  return prune(network, lively_weights(network), {.keep = keep, .scope = scope});
}

TEST(Compact, OfAWholeNetworkIsTheSameNetwork) {
  const Graph network = build_model("lenet5");
  const Compacted small = expect_equal(network, whole_mask(network));
  EXPECT_EQ(small.channels_after, small.channels_before);
  EXPECT_EQ(small.weights, lively_weights(network));
}

TEST(Compact, LeavesOutPrunedChannels) {
  for (const char* name : {"lenet5", "resnet20", "squeezenet1_1"}) {
    const Graph network = build_model(
        name, {.input = std::string(name) == "lenet5" ? Shape{1, 28, 28} : Shape{3, 32, 32}});
    const Compacted small = expect_equal(network, pruned(network, 0.4, Scope::channel));
    EXPECT_LT(static_cast<double>(small.channels_after),
              0.8 * static_cast<double>(small.channels_before))
        << name;
  }
}

TEST(Compact, IsExactAtAnySparsity) {
  const Graph network = build_model("lenet5");
  std::int64_t last = 1 << 20;
  for (const double keep : {0.5, 0.1, 0.02, 0.005}) {
    const Compacted small = expect_equal(network, pruned(network, keep, Scope::global));
    EXPECT_LE(small.channels_after, last);
    last = small.channels_after;
  }
  EXPECT_LT(last, 100) << "of 236 channels";
}

TEST(Compact, WorksWhereAWholeLayerDied) {
  const Graph network = build_model("lenet5");
  Mask mask = whole_mask(network);
  for (MaskTensor& tensor : mask.tensors)
    if (tensor.name == "conv2.weight") std::ranges::fill(tensor.bits, std::uint8_t{0});
  // Each layer keeps one of the constant channels that are left, since no layer can have none.
  const Compacted small = expect_equal(network, mask);
  EXPECT_EQ(small.channels_after, 4 + 10);
}

// A mask of which all weights into (or out of) channel `c` of a layer are gone.
void kill(Mask& mask, const std::string& name, std::int64_t c, bool incoming) {
  for (MaskTensor& tensor : mask.tensors) {
    if (tensor.name != name) continue;
    const std::int64_t columns = tensor.shape[1],
                       block = tensor.count() / tensor.shape[0] / columns;
    for (std::int64_t i = 0; i < tensor.count(); ++i)
      if ((incoming ? i / block / columns : i / block % columns) == c) tensor.set(i, false);
  }
}

TEST(Compact, RemovesAChannelThatNobodyReads) {
  const Graph network = build_model("lenet5");
  Mask mask = whole_mask(network);
  kill(mask, "conv2.weight", 2, false);
  const Compacted small = expect_equal(network, mask);
  EXPECT_EQ(small.network.parameter(maskable(small.network)[0]).shape[0], 5);
}

// conv1 without bias, norm, relu, then a convolution that pads: a channel that is a constant above
// zero is none at the border.
Graph padded_network(bool residual) {
  NetBuilder net("padded", {2, 5, 5});
  const ConvSettings conv{.channels = 4, .kernel = 3, .padding = 1, .bias = false};
  NodeId x = net.relu(net.batch_norm("bn0", net.conv("conv0", net.input(), conv)));
  const NodeId skip = x;
  x = net.relu(net.batch_norm("bn1", net.conv("conv1", x, conv)));
  x = net.batch_norm("bn2", net.conv("conv2", x, conv));
  x = net.relu(residual ? net.add(x, skip) : x);
  x = net.dense("fc", net.global_average_pool(x), 3);
  return std::move(net).finish(x);
}

TEST(Compact, LetsOneConstantChannelStandInForOthersWhereTheNextLayerPads) {
  const Graph network = padded_network(false);
  Mask mask = whole_mask(network);
  for (const std::int64_t c : {0, 1, 3}) kill(mask, "conv1.weight", c, true);
  Weights weights = lively_weights(network);
  weights["bn1.bias"] = {0.5f, 0.7f, 0.1f, -3};  // the last one is shut by the relu
  const Compacted small = compact(network, weights, mask);
  EXPECT_EQ(small.weights.at("bn1.weight").size(), 2u);
  zero_masked(mask, weights);
  EXPECT_LT(distance(logits(small.network, small.weights), logits(network, weights)), 1e-5);
}

TEST(Compact, KeepsWhatAnAdditionNeeds) {
  const Graph network = padded_network(true);
  Mask mask = whole_mask(network);
  kill(mask, "conv2.weight", 1, true);  // the skip still brings channel 1
  EXPECT_EQ(expect_equal(network, mask).weights.at("bn2.weight").size(), 4u);
  kill(mask, "conv0.weight", 1, true);
  kill(mask, "conv1.weight", 1, false);
  kill(mask, "fc.weight", 1, false);
  // Both ends of the addition are gone, and nobody reads their sum.
  EXPECT_EQ(expect_equal(network, mask).weights.at("bn2.weight").size(), 3u);
}

TEST(Compact, GoesThroughDepthwiseConvolutionsAndConcatenations) {
  NetBuilder net("mixed", {3, 6, 6});
  NodeId x = net.relu6(net.conv("expand", net.input(), {.channels = 8, .kernel = 1}));
  x = net.relu6(net.conv("depth", x, {.channels = 8, .kernel = 3, .padding = 1, .groups = 8}));
  const NodeId left = net.relu(net.conv("left", x, {.channels = 4, .kernel = 1}));
  const NodeId right = net.tanh(net.conv("right", x, {.channels = 5, .kernel = 3, .padding = 1}));
  x = net.max_pool(net.concat({left, right}), {.kernel = 2});
  x = net.relu(net.dense("hidden", x, 12));
  const Graph network = std::move(net).finish(net.dense("fc", x, 4));
  for (const double keep : {0.7, 0.5, 0.3, 0.15}) {
    expect_equal(network, pruned(network, keep, Scope::channel));
    expect_equal(network, pruned(network, keep, Scope::global));
  }
}

TEST(Compact, LeavesOperatorsThatNeedAllChannelsAlone) {
  NetBuilder net("closed", {3, 6, 6});
  NodeId x = net.conv("first", net.input(), {.channels = 6, .kernel = 3});
  x = net.local_response_norm(x, {.size = 3});
  x = net.conv("grouped", x, {.channels = 6, .kernel = 3, .groups = 2});
  x = net.layer_norm("norm", net.relu(x), 1e-5);
  const Graph network = std::move(net).finish(net.dense("fc", x, 4));
  const Compacted small = expect_equal(network, pruned(network, 0.3, Scope::channel));
  EXPECT_EQ(small.channels_after, small.channels_before);
}

}  // namespace
}  // namespace regatta::tickets
