#include "support/small_networks.h"

namespace regatta {
namespace {

// A first layer of `channels`, for what comes next to have a gradient to give.
NodeId stem(NetBuilder& n, std::int64_t channels) {
  return n.conv("stem", n.input(), {.channels = channels, .kernel = 3, .padding = 1});
}

SmallNetwork one(const char* name, const Shape& input,
                 std::function<NodeId(NetBuilder&, NodeId)> layer, std::int64_t channels) {
  return {name, input, [=](NetBuilder& n) { return head(n, layer(n, stem(n, channels))); }};
}

using Layer = std::function<NodeId(NetBuilder&, NodeId)>;

std::vector<SmallNetwork> convolutions() {
  const auto conv = [](const ConvSettings& settings) -> Layer {
    return [=](NetBuilder& n, NodeId x) { return n.conv("a", x, settings); };
  };
  return {
      one("groups_of_whole_blocks", {3, 7, 6},
          conv({.channels = 64, .kernel = 3, .padding = 1, .groups = 2}), 32),
      one("groups_of_odd_counts", {3, 7, 6}, conv({.channels = 10, .kernel = 3, .groups = 2}), 6),
      one("many_groups", {3, 7, 6},
          conv(
              {.channels = 24, .kernel = 3, .stride = 2, .padding = 1, .groups = 8, .bias = false}),
          32),
      one("depthwise", {3, 8, 7},
          conv({.channels = 32, .kernel = 3, .stride = 2, .padding = 1, .groups = 32}), 32),
      one("depthwise_of_odd_counts", {3, 8, 7},
          conv({.channels = 21, .kernel = 3, .padding = 1, .groups = 21, .bias = false}), 21),
      one("depthwise_dilated", {3, 9, 9},
          conv({.channels = 18, .kernel = {3, 2}, .padding = 2, .dilation = 2, .groups = 18}), 18),
      one("depthwise_multiplied", {3, 6, 6}, conv({.channels = 12, .kernel = 3, .groups = 6}), 6),
      one("dilated", {3, 11, 10},
          conv({.channels = 20, .kernel = 3, .padding = {2, 3}, .dilation = {2, 3}}), 16),
      one("dilated_strided", {3, 12, 11},
          conv({.channels = 7, .kernel = {2, 3}, .stride = 2, .dilation = {3, 2}}), 5),
      one(
          "long_kernels", {3, 9, 8},
          [](NetBuilder& n, NodeId x) {
            x = n.relu(n.conv("a", x, {.channels = 16, .kernel = {1, 7}, .padding = {0, 3}}));
            return n.conv("b", x, {.channels = 19, .kernel = {5, 1}, .padding = {2, 0}});
          },
          24),
      one("padded_unevenly", {3, 8, 7},
          conv({.channels = 18, .kernel = 3, .stride = 2, .padding = {0, 2, 1, 0}}), 17),
      {"image_in_groups",  // the input itself is read by groups
       {3, 8, 8},
       [](NetBuilder& n) {
         return head(n, n.conv("a", n.input(), {.channels = 6, .kernel = 3, .groups = 3}));
       }},
      {"groups_beside_groups",  // two users, so that one of the gradients is added
       {3, 6, 6},
       [](NetBuilder& n) {
         const NodeId x = stem(n, 12);
         const NodeId y = n.relu(n.conv("a", x, {.channels = 12, .kernel = 1, .groups = 3}));
         const NodeId z = n.conv("b", x, {.channels = 12, .kernel = 1, .groups = 12});
         return head(
             n, n.add(n.conv("c", x, {.channels = 12, .kernel = 1, .groups = 4}), n.add(y, z)));
       }},
  };
}

std::vector<SmallNetwork> activations() {
  // Scaled up by a convolution's sum, so that relu6 meets both of its ends.
  const auto twice = [](const Layer& act) -> Layer {
    return [=](NetBuilder& n, NodeId x) {
      x = act(n, n.conv("a", x, {.channels = 21, .kernel = 3}));
      return n.add(act(n, n.dense("b", x, 9)), act(n, n.dense("c", x, 9)));
    };
  };
  // Two users: one of the gradients is added.
  const auto beside = [](const Layer& act) -> Layer {
    return [=](NetBuilder& n, NodeId x) { return n.add(act(n, x), n.add(act(n, x), x)); };
  };
  const Layer relu6 = [](NetBuilder& n, NodeId x) { return n.relu6(x); };
  const Layer leaky = [](NetBuilder& n, NodeId x) { return n.leaky_relu(x, 0.1); };
  const Layer sigmoid = [](NetBuilder& n, NodeId x) { return n.sigmoid(x); };
  const Layer tanh = [](NetBuilder& n, NodeId x) { return n.tanh(x); };
  const Layer gelu = [](NetBuilder& n, NodeId x) { return n.gelu(x); };
  const Layer tanh_gelu = [](NetBuilder& n, NodeId x) { return n.gelu(x, true); };
  return {
      one("relu6", {3, 6, 6}, twice(relu6), 32),
      one("relu6_beside", {3, 6, 6}, beside(relu6), 10),
      one("leaky_relu", {3, 6, 6}, twice(leaky), 8),
      one("leaky_relu_beside", {3, 6, 6}, beside(leaky), 10),
      one("sigmoid", {3, 6, 6}, twice(sigmoid), 8),
      one("sigmoid_beside", {3, 6, 6}, beside(sigmoid), 10),
      one("tanh", {3, 6, 6}, twice(tanh), 8),
      one("tanh_beside", {3, 6, 6}, beside(tanh), 10),
      one("gelu", {3, 6, 6}, twice(gelu), 8),
      one("gelu_beside", {3, 6, 6}, beside(gelu), 10),
      one("gelu_by_tanh", {3, 6, 6}, twice(tanh_gelu), 8),
  };
}

std::vector<SmallNetwork> pools() {
  const auto average = [](const PoolSettings& settings) -> Layer {
    return [=](NetBuilder& n, NodeId x) {
      return n.conv("a", n.average_pool(x, settings), {.channels = 5});
    };
  };
  const auto adaptive = [](Extent output) -> Layer {
    return [=](NetBuilder& n, NodeId x) { return n.adaptive_average_pool(x, output); };
  };
  const auto largest = [](const PoolSettings& settings) -> Layer {
    return [=](NetBuilder& n, NodeId x) { return n.max_pool(x, settings); };
  };
  return {
      one("average_pool", {3, 8, 6}, average({.kernel = 2}), 16),
      one("average_pool_overlapping", {3, 9, 7}, average({.kernel = 3, .stride = 1, .padding = 1}),
          21),
      one("average_pool_without_padding", {3, 9, 8},
          average({.kernel = 3, .stride = 2, .padding = 1, .count_padding = false}), 6),
      one("average_pool_ceil", {3, 8, 7},
          average({.kernel = {3, 2}, .stride = 2, .padding = {1, 1, 0, 0}, .ceil = true}), 20),
      one("adaptive_pool", {3, 9, 7}, adaptive({4, 3}), 18),
      one("adaptive_pool_to_more", {3, 3, 5}, adaptive({4, 7}), 8),
      one("adaptive_pool_to_one", {3, 9, 7}, adaptive(1), 16),
      one("max_pool_ceil", {3, 8, 11}, largest({.kernel = 3, .stride = 2, .ceil = true}), 16),
      one("max_pool_uneven", {3, 8, 7},
          largest({.kernel = 3, .stride = 2, .padding = {1, 0, 0, 1}}), 18),
      one("max_pool_dilated", {3, 9, 8}, largest({.kernel = 2, .stride = 1, .dilation = {3, 2}}),
          16),
      {"averages_beside",
       {3, 6, 6},
       [](NetBuilder& n) {
         const NodeId x = stem(n, 12);
         const NodeId y = n.average_pool(x, {.kernel = 3, .stride = 1, .padding = 1});
         return head(n, n.add(x, n.add(y, n.adaptive_average_pool(x, 6))));
       }},
  };
}

std::vector<SmallNetwork> concatenations() {
  const auto parts = [](const std::vector<std::int64_t>& channels) -> Layer {
    return [=](NetBuilder& n, NodeId x) {
      std::vector<NodeId> all;
      for (std::size_t i = 0; i < channels.size(); ++i)
        all.push_back(
            n.relu(n.conv("part" + std::to_string(i), x, {.channels = channels[i], .kernel = 1})));
      return n.conv("after", n.concat(all), {.channels = 6, .kernel = 3});
    };
  };
  return {
      one("concat_whole_blocks", {3, 6, 5}, parts({16, 32}), 8),
      one("concat_odd_counts", {3, 6, 5}, parts({5, 16, 3, 30, 1}), 8),
      one("concat_of_many", {3, 4, 4}, parts({3, 4, 5, 3, 4, 5, 3, 4, 5, 7, 16}), 4),
      one(
          "concat_with_itself", {3, 6, 5},
          [](NetBuilder& n, NodeId x) {
            return n.conv("a", n.concat({x, n.relu(x), x}), {.channels = 6});
          },
          7),
      {"concat_with_the_image",
       {3, 6, 5},
       [](NetBuilder& n) {
         return head(n, n.conv("a", n.concat({n.input(), stem(n, 7)}), {.channels = 9}));
       }},
      {"concat_vectors",
       {3, 4, 4},
       [](NetBuilder& n) {
         const NodeId x = n.dense("a", n.input(), 11);
         return head(n, n.concat({x, n.tanh(n.dense("b", x, 5)), n.relu(x)}));
       }},
  };
}

std::vector<SmallNetwork> others() {
  return {
      one(
          "dropout", {3, 6, 5},
          [](NetBuilder& n, NodeId x) {
            x = n.conv("a", n.dropout(x, 0.3), {.channels = 6});
            return n.dropout("vector", n.dense("b", x, 20));
          },
          21),
      one(
          "dropout_beside", {3, 6, 5},
          [](NetBuilder& n, NodeId x) {
            return n.add(n.dropout(x, 0.4), n.add(x, n.dropout(x, 0.2)));
          },
          16),
      one(
          "local_response_norm", {3, 6, 5},
          [](NetBuilder& n, NodeId x) {
            return n.local_response_norm(x, {.size = 5, .alpha = 0.5, .k = 2});
          },
          21),
      one(
          "local_response_norm_even", {3, 4, 5},
          [](NetBuilder& n, NodeId x) {
            x = n.add(x, n.local_response_norm(x, {.size = 4, .alpha = 1, .beta = 0.6}));
            return n.conv("a", x, {.channels = 6});
          },
          16),
      one(
          "layer_norm", {3, 6, 5},
          [](NetBuilder& n, NodeId x) {
            return n.conv("a", n.layer_norm("b", x), {.channels = 6});
          },
          21),
      one(
          "layer_norm_beside", {3, 6, 5},
          [](NetBuilder& n, NodeId x) {
            x = n.add(x, n.layer_norm("a", x, 0.1));
            return n.layer_norm("c", n.dense("b", x, 19));
          },
          16),
  };
}

}  // namespace

std::vector<SmallNetwork> more_small_networks() {
  std::vector<SmallNetwork> all;
  for (const auto& networks : {convolutions(), activations(), pools(), concatenations(), others()})
    all.insert(all.end(), networks.begin(), networks.end());
  return all;
}

}  // namespace regatta
