#include "tickets/compact.h"

#include <utility>

#include "graph/op.h"

namespace regatta::tickets {
namespace {

std::vector<float> gather(const std::vector<float>& values, const std::vector<std::size_t>& from) {
  std::vector<float> gathered;
  for (const std::size_t i : from) gathered.push_back(values[i]);
  return gathered;
}

class Compacting {
 public:
  Compacting(const Graph& network, const Weights& weights, const Mask& mask)
      : graph_(network),
        weights_(weights),
        mask_(mask),
        channels_(plan_channels(network, weights)) {}

  Compacted run() {
    Compacted result{.network = smaller_network(), .weights = {}, .mask = {}};
    result.mask = whole_mask(result.network);
    for (const Node& node : graph_.nodes()) {
      if (node.id == graph_.loss()) continue;
      if (channel_use(graph_, node) == ChannelUse::mixes)
        mix(node, result);
      else
        pass(node, result);
      if (node.op->name != "conv" && node.op->name != "dense") continue;
      result.channels_before += node.shape.channels();
      result.channels_after += std::ssize(channels_of(node).kept_ones());
    }
    return result;
  }

 private:
  const Channels& channels_of(const Node& node) const { return channels_[node.id.value]; }
  const std::string& name(ParameterId id) const { return graph_.parameter(id).name; }

  Graph smaller_network() const {
    GraphBuilder builder(graph_.name() + "-compact");
    for (const Node& node : graph_.nodes()) {
      Attributes attributes = node.attributes;
      const auto left = static_cast<std::int64_t>(channels_of(node).kept_ones().size());
      if (node.op->name == "dense") attributes.set("features", left);
      if (node.op->name == "conv") {
        attributes.set("channels", left);
        if (channel_use(graph_, node) == ChannelUse::passes) attributes.set("groups", left);
      }
      builder.add(*node.op, node.name, node.inputs, std::move(attributes));
    }
    return std::move(builder).finish();
  }

  // A convolution or dense layer: rows and columns that stay, and what constants that went gave.
  void mix(const Node& node, Compacted& result) const {
    const Channels& input = channels_of(graph_.node(node.inputs.front()));
    const LayerWeights layer = layer_weights(graph_, node, weights_, input.count());
    const std::vector<std::size_t> rows = channels_of(node).kept_ones(),
                                   columns = input.kept_ones();
    const std::vector<float>* old_bias = bias_of(graph_, node, weights_);
    const std::optional<std::size_t> stand_in = input.stand_in();
    const bool by_bias = old_bias && !pads(node);
    const std::string& weight_name = name(node.parameters[0]);
    const MaskTensor* old_mask = mask_.find(weight_name);
    std::vector<float> weight;
    std::vector<bool> stays;
    std::vector<double> bias;
    for (const std::size_t row : rows) {
      std::vector<double> extra(layer.block);  // of constants, for the one that stands in
      double shift = 0;
      for (std::size_t c = 0; c < layer.columns; ++c) {
        const double constant = input.constant[c].value_or(0);
        if (input.kept[c] || constant == 0) continue;
        if (by_bias)
          shift += constant * layer.sum(row, c);
        else if (stand_in)
          for (std::size_t k = 0; k < layer.block; ++k)
            extra[k] +=
                static_cast<double>(layer.at(row, c)[k]) * constant / *input.constant[*stand_in];
      }
      for (const std::size_t c : columns)
        for (std::size_t k = 0; k < layer.block; ++k) {
          const double more = !by_bias && stand_in == c ? extra[k] : 0;
          weight.push_back(static_cast<float>(static_cast<double>(layer.at(row, c)[k]) + more));
          const auto place = static_cast<std::int64_t>((row * layer.columns + c) * layer.block + k);
          stays.push_back(more != 0 || !old_mask || old_mask->keeps(place));
        }
      if (old_bias) bias.push_back(static_cast<double>((*old_bias)[row]) + shift);
    }
    for (MaskTensor& tensor : result.mask.tensors)
      for (std::size_t i = 0; tensor.name == weight_name && i < stays.size(); ++i)
        tensor.set(static_cast<std::int64_t>(i), stays[i]);
    result.weights[weight_name] = std::move(weight);
    if (old_bias) result.weights[name(node.parameters[1])] = {bias.begin(), bias.end()};
  }

  // Anything else: whatever it has of channels. A depthwise convolution has a filter of each.
  void pass(const Node& node, Compacted& result) const {
    const Channels& value = channels_of(node);
    const auto take = [&](const Parameter& parameter) {
      const std::vector<float>& values = weights_.at(parameter.name);
      const bool by_channel =
          parameter.shape[0] == static_cast<std::int64_t>(value.count()) && value.features == 1;
      if (!by_channel) {
        result.weights[parameter.name] = values;
        return;
      }
      std::vector<std::size_t> places;
      const std::size_t block = values.size() / value.count();
      for (const std::size_t c : value.kept_ones())
        for (std::size_t k = 0; k < block; ++k) places.push_back(c * block + k);
      result.weights[parameter.name] = gather(values, places);
      const MaskTensor* old_mask = mask_.find(parameter.name);
      for (MaskTensor& tensor : result.mask.tensors)
        for (std::size_t i = 0; old_mask && tensor.name == parameter.name && i < places.size(); ++i)
          tensor.set(static_cast<std::int64_t>(i),
                     old_mask->keeps(static_cast<std::int64_t>(places[i])));
    };
    for (const ParameterId id : node.parameters) take(graph_.parameter(id));
    for (const StateId id : node.states) take(graph_.state(id));
  }

  const Graph& graph_;
  const Weights& weights_;
  const Mask& mask_;
  std::vector<Channels> channels_;  // by node
};

}  // namespace

Compacted compact(const Graph& network, Weights weights, const Mask& mask) {
  zero_masked(mask, weights);
  return Compacting(network, weights, mask).run();
}

}  // namespace regatta::tickets
