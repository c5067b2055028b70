#include "parity/operator_networks.h"

#include <string>

#include "ops/builder.h"

namespace regatta {
namespace {

NodeId convolutions(NetBuilder& n, std::int64_t classes) {
  const std::vector<std::pair<const char*, ConvSettings>> layers{
      {"stem", {.channels = 32, .kernel = 3, .padding = 1}},
      {"grouped", {.channels = 64, .kernel = 3, .padding = 1, .groups = 2}},
      {"odd", {.channels = 24, .kernel = 3, .stride = 2, .padding = 1, .groups = 8, .bias = false}},
      {"depthwise", {.channels = 24, .kernel = 3, .padding = 1, .groups = 24}},
      {"multiplied", {.channels = 48, .kernel = 3, .padding = {1, 0}, .groups = 24}},
      {"dilated", {.channels = 20, .kernel = 3, .padding = 2, .dilation = 2}},
      {"wide", {.channels = 18, .kernel = {1, 5}, .padding = {0, 2}, .bias = false}},
      {"tall", {.channels = 16, .kernel = {3, 1}, .padding = {1, 0}}},
      {"uneven", {.channels = 12, .kernel = 3, .stride = 2, .padding = {0, 2, 1, 0}}},
  };
  NodeId x = n.input();
  for (const auto& [name, settings] : layers) x = n.tanh(n.conv(name, x, settings));
  return n.dense("head", x, classes);
}

NodeId activations(NetBuilder& n, std::int64_t classes) {
  NodeId x = n.conv("first", n.input(), {.channels = 21, .kernel = 3});
  x = n.add(x, x);
  x = n.relu6(n.add(x, x));
  x = n.leaky_relu(n.conv("second", x, {.channels = 18, .kernel = 3}), 0.2);
  x = n.gelu(n.conv("third", x, {.channels = 16, .kernel = 3}));
  x = n.sigmoid(n.conv("fourth", x, {.channels = 12, .kernel = 3}));
  x = n.gelu(n.dense("fifth", x, 20), true);
  return n.dense("head", n.tanh(n.dense("sixth", x, 16)), classes);
}

NodeId pools(NetBuilder& n, std::int64_t classes) {
  NodeId x = n.tanh(n.conv("first", n.input(), {.channels = 18, .kernel = 3, .padding = 1}));
  x = n.average_pool(x, {.kernel = 3, .stride = 1, .padding = 1});
  x = n.max_pool(x, {.kernel = 3, .stride = 2, .ceil = true});
  x = n.tanh(n.conv("second", x, {.channels = 16, .kernel = 3, .padding = 1}));
  x = n.average_pool(
      x, {.kernel = {3, 2}, .stride = 1, .padding = 1, .ceil = true, .count_padding = false});
  x = n.average_pool(x, {.kernel = 2, .stride = 2, .padding = 1, .ceil = true});
  x = n.tanh(n.conv("third", x, {.channels = 21, .kernel = 3, .padding = 1}));
  x = n.max_pool(x, {.kernel = 2, .stride = 1, .padding = {0, 1, 1, 0}});
  return n.dense("head", n.adaptive_average_pool(x, {3, 2}), classes);
}

NodeId branches(NetBuilder& n, std::int64_t classes) {
  NodeId x = n.tanh(n.conv("stem", n.input(), {.channels = 7, .kernel = 3}));
  std::vector<NodeId> parts{x};
  for (const std::int64_t channels : {5, 16, 3, 32, 1})
    parts.push_back(
        n.tanh(n.conv("branch" + std::to_string(parts.size() - 1), x, {.channels = channels})));
  x = n.tanh(n.conv("after", n.concat(parts), {.channels = 16, .kernel = 3, .stride = 2}));
  x = n.concat({x, n.tanh(n.conv("whole", x, {.channels = 16}))});
  return n.dense("head",
                 n.concat({n.tanh(n.dense("left", x, 11)), n.sigmoid(n.dense("right", x, 6))}),
                 classes);
}

NodeId norms(NetBuilder& n, std::int64_t classes) {
  NodeId x = n.conv("first", n.input(), {.channels = 21, .kernel = 3});
  x = n.local_response_norm(x, {.size = 5, .alpha = 0.5, .beta = 0.75, .k = 2});
  x = n.layer_norm("image", n.conv("second", x, {.channels = 18, .kernel = 3, .stride = 2}));
  x = n.local_response_norm(x, {.size = 4, .alpha = 0.1, .beta = 0.6});
  x = n.conv("third", x, {.channels = 16, .kernel = 3});
  x = n.batch_norm("batch", x, {.epsilon = 1e-3, .momentum = 0.2});
  return n.dense("head", n.layer_norm("vector", n.dense("fourth", x, 24), 1e-3), classes);
}

NodeId dropouts(NetBuilder& n, std::int64_t classes) {
  NodeId x = n.tanh(n.conv("first", n.input(), {.channels = 21, .kernel = 3}));
  x = n.dropout("image", x, 0.3);
  x = n.tanh(n.conv("second", x, {.channels = 16, .kernel = 3, .stride = 2}));
  return n.dense("head", n.dropout("vector", n.tanh(n.dense("third", x, 40))), classes);
}

struct Row {
  const char* name;
  NodeId (*body)(NetBuilder&, std::int64_t classes);
};
constexpr Row rows[] = {
    {"convolutions", convolutions},
    {"activations", activations},
    {"pools", pools},
    {"branches", branches},
    {"norms", norms},
    {"dropouts", dropouts},
};

}  // namespace

std::vector<const char*> operator_network_names() {
  std::vector<const char*> names;
  for (const Row& row : rows) names.push_back(row.name);
  return names;
}

std::optional<Graph> operator_network(std::string_view name, const Shape& input,
                                      std::int64_t classes) {
  for (const Row& row : rows) {
    if (row.name != name) continue;
    NetBuilder net(row.name, input);
    const NodeId logits = row.body(net, classes);
    return std::move(net).finish(logits);
  }
  return std::nullopt;
}

}  // namespace regatta
