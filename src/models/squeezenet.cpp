// SqueezeNet 1.1 (Iandola et al. 2016): "fire" modules, and no dense layer at all.
#include <string>
#include <utility>

#include "models/models.h"
#include "ops/builder.h"

namespace regatta {
namespace {

constexpr WeightStart start{.kind = WeightStart::Kind::he_uniform_in, .zero_bias = true};
constexpr WeightStart last_start{
    .kind = WeightStart::Kind::normal, .deviation = 0.01, .zero_bias = true};

NodeId fire(NetBuilder& net, const std::string& name, NodeId from, std::int64_t squeezed,
            std::int64_t expanded) {
  const NodeId x =
      net.relu(net.conv(name + ".squeeze", from, {.channels = squeezed, .start = start}));
  const NodeId one =
      net.relu(net.conv(name + ".expand1x1", x, {.channels = expanded, .start = start}));
  const NodeId three = net.relu(net.conv(
      name + ".expand3x3", x, {.channels = expanded, .kernel = 3, .padding = 1, .start = start}));
  return net.concat({one, three});
}

Graph build(const Shape& input, std::int64_t classes) {
  const PoolSettings pool{.kernel = 3, .stride = 2, .ceil = true};
  NetBuilder net("squeezenet1_1", input);
  NodeId x = net.conv("features.0", net.input(),
                      {.channels = 64, .kernel = 3, .stride = 2, .start = start});
  x = net.max_pool(net.relu(x), pool);
  x = fire(net, "features.3", x, 16, 64);
  x = fire(net, "features.4", x, 16, 64);
  x = net.max_pool(x, pool);
  x = fire(net, "features.6", x, 32, 128);
  x = fire(net, "features.7", x, 32, 128);
  x = net.max_pool(x, pool);
  x = fire(net, "features.9", x, 48, 192);
  x = fire(net, "features.10", x, 48, 192);
  x = fire(net, "features.11", x, 64, 256);
  x = fire(net, "features.12", x, 64, 256);
  x = net.dropout("classifier.0", x, 0.5);
  x = net.relu(net.conv("classifier.1", x, {.channels = classes, .start = last_start}));
  return std::move(net).finish(net.global_average_pool(x));
}

}  // namespace

const ModelDef squeezenet1_1_model{
    .name = "squeezenet1_1", .input = {3, 224, 224}, .classes = 1000, .build = build};

}  // namespace regatta
