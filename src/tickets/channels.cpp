#include "tickets/channels.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "graph/op.h"

namespace regatta::tickets {
namespace {

bool is(const Node& node, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, node.op->name) != names.end();
}

const std::vector<float>& tensor(const Weights& weights, const std::string& name) {
  const auto found = weights.find(name);
  if (found == weights.end()) throw Error("compacting lacks the tensor '" + name + "'");
  return found->second;
}

// Disjoint sets (union-find) of channels: those of one set stay or go together.
class ChannelSets {
 public:
  explicit ChannelSets(std::size_t count) : parent_(count), kept_(count) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  std::size_t root(std::size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(std::size_t a, std::size_t b) { parent_[root(a)] = root(b); }
  void keep(std::size_t i) { kept_[root(i)] = true; }
  bool kept(std::size_t i) { return kept_[root(i)]; }

 private:
  std::vector<std::size_t> parent_;
  std::vector<bool> kept_;
};

class Planning {
 public:
  Planning(const Graph& network, const Weights& weights)
      : graph_(network), weights_(weights), channels_(network.nodes().size()) {}

  std::vector<Channels> run() {
    for (const Node& node : graph_.nodes())
      if (node.id != graph_.loss()) find_constants(node);
    for (std::size_t n = graph_.nodes().size(); n-- > 0;) find_needed(graph_.nodes()[n]);
    tie();
    for (bool changed = true; changed;) {
      changed = false;
      for (const Node& node : graph_.nodes())
        if (node.id != graph_.loss()) changed |= keep_one(node) || keep_stand_in(node);
    }
    for (const Node& node : graph_.nodes())
      for (std::size_t c = 0; c < channels_of(node).count(); ++c)
        channels_of(node).kept[c] = kept(node, c);
    return std::move(channels_);
  }

 private:
  Channels& channels_of(NodeId id) { return channels_[id.value]; }
  Channels& channels_of(const Node& node) { return channels_[node.id.value]; }
  Channels& input_of(const Node& node) { return channels_of(node.inputs.front()); }
  // Its values reach the logits and depend on the sample.
  static bool live(const Channels& value, std::size_t c) {
    return value.needed[c] && !value.constant[c];
  }

  void set_count(const Node& node, std::size_t count, std::size_t features) {
    Channels& value = channels_of(node);
    value.features = features;
    value.constant.resize(count);
    value.needed.resize(count);
    value.kept.resize(count);
  }

  // --- forward: what is constant

  void find_constants(const Node& node) {
    switch (channel_use(graph_, node)) {
      case ChannelUse::mixes:
        set_count(node, static_cast<std::size_t>(node.shape.channels()), 1);
        mixed_constants(node);
        break;
      case ChannelUse::passes: {
        const bool vector = node.shape.rank() == 1;
        const auto pixels = static_cast<std::size_t>(node.shape.elements());
        const std::size_t count = input_of(node).count();
        set_count(node, count, vector ? pixels / count : 1);
        for (std::size_t c = 0; c < count; ++c)
          channels_of(node).constant[c] = passed_constant(node, c);
        break;
      }
      case ChannelUse::joins: {
        std::size_t count = 0;
        for (const NodeId input : node.inputs) count += channels_of(input).count();
        set_count(node, count, 1);
        auto next = channels_of(node).constant.begin();
        for (const NodeId input : node.inputs)
          next = std::ranges::copy(channels_of(input).constant, next).out;
        break;
      }
      case ChannelUse::closed:
        set_count(node, static_cast<std::size_t>(node.shape.channels()), 1);
        break;
    }
  }

  void mixed_constants(const Node& node) {
    const Channels& input = input_of(node);
    const LayerWeights layer = layer_weights(graph_, node, weights_, input.count());
    const std::vector<float>* bias = bias_of(graph_, node, weights_);
    for (std::size_t row = 0; row < layer.rows; ++row) {
      double value = bias ? (*bias)[row] : 0;
      bool constant = true;
      for (std::size_t c = 0; c < layer.columns && constant; ++c) {
        if (!layer.any(row, c)) continue;
        constant = input.constant[c] && (*input.constant[c] == 0 || !pads(node));
        if (constant) value += *input.constant[c] * layer.sum(row, c);
      }
      if (constant) channels_of(node).constant[row] = value;
    }
  }

  std::optional<double> passed_constant(const Node& node, std::size_t c) {
    const std::optional<double> x = input_of(node).constant[c];
    if (node.op->name == "conv") {
      const LayerWeights layer = layer_weights(graph_, node, weights_, 1);
      const std::vector<float>* bias = bias_of(graph_, node, weights_);
      const double shift = bias ? (*bias)[c] : 0;
      if (!layer.any(c, 0)) return shift;
      if (!x || (*x != 0 && pads(node))) return std::nullopt;
      return shift + *x * layer.sum(c, 0);
    }
    if (node.op->name == "batch_norm") return normalised(node, c, x);
    if (!x) return std::nullopt;
    if (node.op->name == "relu") return std::max(*x, 0.0);
    if (node.op->name == "relu6") return std::clamp(*x, 0.0, 6.0);
    if (node.op->name == "add") {
      const std::optional<double> y = channels_of(node.inputs[1]).constant[c];
      return y ? std::optional(*x + *y) : std::nullopt;
    }
    if (node.op->name == "average_pool" && *x != 0 && pads(node)) return std::nullopt;
    // Nothing is claimed about other activations: their channels stay.
    const bool same = is(node, {"average_pool", "max_pool", "global_average_pool",
                                "adaptive_average_pool", "flatten", "dropout"});
    return same ? x : std::nullopt;
  }

  std::optional<double> normalised(const Node& node, std::size_t c, std::optional<double> x) const {
    const auto parameter = [&](std::size_t i) -> double {
      return tensor(weights_, graph_.parameter(node.parameters[i]).name)[c];
    };
    const auto state = [&](std::size_t i) -> double {
      return tensor(weights_, graph_.state(node.states[i]).name)[c];
    };
    const double scale = parameter(0), shift = parameter(1);
    if (scale == 0) return shift;
    if (!x) return std::nullopt;
    const double epsilon = node.attributes.real("epsilon", 1e-5);
    return scale * (*x - state(0)) / std::sqrt(state(1) + epsilon) + shift;
  }

  // --- backward: what is needed

  void find_needed(const Node& node) {
    if (node.id == graph_.loss()) {
      need_all(node.inputs.front());
      return;
    }
    const Channels& value = channels_of(node);
    switch (channel_use(graph_, node)) {
      case ChannelUse::mixes: {
        Channels& input = input_of(node);
        const LayerWeights layer = layer_weights(graph_, node, weights_, input.count());
        for (std::size_t row = 0; row < layer.rows; ++row)
          for (std::size_t c = 0; live(value, row) && c < layer.columns; ++c)
            if (layer.any(row, c)) input.needed[c] = true;
        break;
      }
      case ChannelUse::passes:
        for (std::size_t c = 0; c < value.count(); ++c)
          for (const NodeId input : node.inputs)
            if (live(value, c)) channels_of(input).needed[c] = true;
        break;
      case ChannelUse::joins: {
        std::size_t at = 0;
        for (const NodeId input : node.inputs)
          for (std::size_t c = 0; c < channels_of(input).count(); ++c, ++at)
            if (live(value, at)) channels_of(input).needed[c] = true;
        break;
      }
      case ChannelUse::closed:
        for (const NodeId input : node.inputs) need_all(input);
        break;
    }
  }

  void need_all(NodeId id) { channels_of(id).needed.assign(channels_of(id).count(), true); }

  // --- what stays

  void tie() {
    std::size_t count = 0;
    for (const Channels& value : channels_) {
      first_.push_back(count);
      count += value.count();
    }
    sets_.emplace(count);
    for (const Node& node : graph_.nodes()) {
      if (node.id == graph_.loss()) continue;
      const ChannelUse use = channel_use(graph_, node);
      std::size_t at = 0;
      for (const NodeId input : node.inputs)
        for (std::size_t c = 0; c < channels_of(input).count(); ++c, ++at) {
          if (use == ChannelUse::passes) sets_->join(number(node.id, c), number(input, c));
          if (use == ChannelUse::joins) sets_->join(number(node.id, at), number(input, c));
        }
    }
    for (const Node& node : graph_.nodes()) {
      if (node.id == graph_.loss()) continue;
      const bool closed = channel_use(graph_, node) == ChannelUse::closed;
      const bool fixed = closed || node.id == graph_.logits();
      for (std::size_t c = 0; c < channels_of(node).count(); ++c)
        if (fixed || live(channels_of(node), c)) sets_->keep(number(node.id, c));
      for (const NodeId input : node.inputs)
        for (std::size_t c = 0; closed && c < channels_of(input).count(); ++c)
          sets_->keep(number(input, c));
    }
  }

  std::size_t number(NodeId id, std::size_t c) const { return first_[id.value] + c; }
  bool kept(const Node& node, std::size_t c) { return sets_->kept(number(node.id, c)); }

  std::size_t largest_constant(const Channels& value) const {
    const auto size = [](const std::optional<double>& x) { return x ? std::abs(*x) : -1.0; };
    return static_cast<std::size_t>(std::ranges::max_element(value.constant, {}, size) -
                                    value.constant.begin());
  }

  // A value has one channel at least.
  bool keep_one(const Node& node) {
    for (std::size_t c = 0; c < channels_of(node).count(); ++c)
      if (kept(node, c)) return false;
    sets_->keep(number(node.id, largest_constant(channels_of(node))));
    return true;
  }

  // Where a layer cannot take constants into its bias, one of them must stay.
  bool keep_stand_in(const Node& node) {
    if (channel_use(graph_, node) != ChannelUse::mixes) return false;
    if (!pads(node) && bias_of(graph_, node, weights_)) return false;
    const Node& from = graph_.node(node.inputs.front());
    const Channels& input = channels_of(from);
    const auto counts = [&](std::size_t c) { return input.constant[c].value_or(0) != 0; };
    const LayerWeights layer = layer_weights(graph_, node, weights_, input.count());
    bool lacks = false;
    for (std::size_t c = 0; c < input.count(); ++c) {
      if (!counts(c)) continue;
      if (kept(from, c)) return false;  // it can stand in
      for (std::size_t row = 0; row < layer.rows && !lacks; ++row)
        lacks = kept(node, row) && layer.any(row, c);
    }
    if (lacks) sets_->keep(number(from.id, largest_constant(input)));
    return lacks;
  }

  const Graph& graph_;
  const Weights& weights_;
  std::vector<Channels> channels_;  // by node
  std::vector<std::size_t> first_;  // by node: the number of its first channel
  std::optional<ChannelSets> sets_;
};

}  // namespace

bool LayerWeights::any(std::size_t row, std::size_t column) const {
  return std::ranges::any_of(at(row, column), [](float value) { return value != 0; });
}

double LayerWeights::sum(std::size_t row, std::size_t column) const {
  const auto between = at(row, column);
  return std::accumulate(between.begin(), between.end(), 0.0);
}

std::vector<std::size_t> Channels::kept_ones() const {
  std::vector<std::size_t> ones;
  for (std::size_t c = 0; c < count(); ++c)
    if (kept[c]) ones.push_back(c);
  return ones;
}

std::optional<std::size_t> Channels::stand_in() const {
  std::optional<std::size_t> best;
  for (std::size_t c = 0; c < count(); ++c)
    if (kept[c] && constant[c].value_or(0) != 0 &&
        (!best || std::abs(*constant[c]) > std::abs(*constant[*best])))
      best = c;
  return best;
}

ChannelUse channel_use(const Graph& graph, const Node& node) {
  if (node.op->name == "conv") {
    const std::int64_t groups = node.attributes.integer("groups", 1);
    if (groups == 1) return ChannelUse::mixes;
    const std::int64_t inputs = graph.node(node.inputs.front()).shape.channels();
    const bool depthwise = groups == inputs && groups == node.shape.channels();
    return depthwise ? ChannelUse::passes : ChannelUse::closed;
  }
  if (node.op->name == "dense") return ChannelUse::mixes;
  // A channel of a vector may be several features, which these operators take one by one.
  const bool vector = node.shape.rank() == 1;
  if (node.op->name == "batch_norm") return vector ? ChannelUse::closed : ChannelUse::passes;
  if (node.op->name == "concat") return vector ? ChannelUse::closed : ChannelUse::joins;
  const bool passes =
      is(node, {"relu", "relu6", "leaky_relu", "sigmoid", "tanh", "gelu", "dropout", "max_pool",
                "average_pool", "global_average_pool", "adaptive_average_pool", "flatten", "add"});
  return passes ? ChannelUse::passes : ChannelUse::closed;
}

bool pads(const Node& node) {
  const std::vector<std::int64_t> padding = node.attributes.list("padding");
  return std::ranges::any_of(padding, [](std::int64_t each) { return each != 0; });
}

LayerWeights layer_weights(const Graph& graph, const Node& node, const Weights& weights,
                           std::size_t columns) {
  const Parameter& parameter = graph.parameter(node.parameters.front());
  const std::vector<float>& values = tensor(weights, parameter.name);
  const auto rows = static_cast<std::size_t>(parameter.shape[0]);
  return {values, rows, columns, values.size() / rows / columns};
}

const std::vector<float>* bias_of(const Graph& graph, const Node& node, const Weights& weights) {
  if (node.parameters.size() < 2) return nullptr;
  return &tensor(weights, graph.parameter(node.parameters[1]).name);
}

std::vector<Channels> plan_channels(const Graph& network, const Weights& weights) {
  return Planning(network, weights).run();
}

}  // namespace regatta::tickets
