// Which channels of a network's values matter: what masks have left without effect can go.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "models/onnx.h"

namespace regatta::tickets {

// Weights of a convolution or dense layer as a matrix of blocks: a row for each output channel, a
// column for each input channel, a block for the weights between the two.
struct LayerWeights {
  std::span<const float> values;
  std::size_t rows = 0, columns = 0, block = 0;

  std::span<const float> at(std::size_t row, std::size_t column) const {
    return values.subspan((row * columns + column) * block, block);
  }
  bool any(std::size_t row, std::size_t column) const;  // is not zero
  double sum(std::size_t row, std::size_t column) const;
};

// Channels of a node's value. After flattening, a channel is several features side by side.
struct Channels {
  std::size_t features = 1;  // of a vector, per channel
  // In evaluation, for every sample and pixel the same; none: it depends on the sample.
  std::vector<std::optional<double>> constant;
  std::vector<bool> needed;  // by the logits, unless it is constant
  std::vector<bool> kept;

  std::size_t count() const { return kept.size(); }
  std::vector<std::size_t> kept_ones() const;
  // The largest of the kept channels that are constant and not zero: it can stand in for constants
  // that go.
  std::optional<std::size_t> stand_in() const;
};

// How an operator treats channels.
enum class ChannelUse {
  mixes,   // every output channel may read every input channel: conv, dense
  passes,  // channel by channel: norms, activations, pools, additions, depthwise convolutions
  joins,   // its inputs' channels one after another: concat
  closed,  // needs all channels as they are
};
ChannelUse channel_use(const Graph& graph, const Node& node);

bool pads(const Node& node);  // with zeros, so that a constant is none at the border
LayerWeights layer_weights(const Graph& graph, const Node& node, const Weights& weights,
                           std::size_t columns);
// The bias of a convolution or dense layer; null if it has none.
const std::vector<float>* bias_of(const Graph& graph, const Node& node, const Weights& weights);

// By node, of a network that is not fused. A channel stays if it matters somewhere among all the
// values that an addition, a norm, a pool or a concatenation ties together. Channels that are the
// same constant everywhere go: a layer that reads them takes them into its bias, or, where it has
// none or pads, into the weights of a constant channel that stays for that.
std::vector<Channels> plan_channels(const Graph& network, const Weights& weights);

}  // namespace regatta::tickets
