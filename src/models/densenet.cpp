// DenseNet-121 (Huang et al. 2016): every layer reads all before it in its block. What it reads is
// kept concatenated and grows by one layer at a time, which is the same and copies less.
#include <string>
#include <utility>

#include "models/models.h"
#include "ops/builder.h"

namespace regatta {
namespace {

constexpr std::int64_t growth = 32;
constexpr std::int64_t bottleneck = 4 * growth;

class DenseNetBuilder {
 public:
  explicit DenseNetBuilder(const Shape& input) : net_("densenet121", input) {}

  Graph build(std::int64_t classes) && {
    static constexpr int depths[] = {6, 12, 24, 16};
    std::int64_t channels = 64;
    NodeId x = conv("features.conv0", net_.input(),
                    {.channels = channels, .kernel = 7, .stride = 2, .padding = 3});
    x = net_.max_pool(norm_relu("features.norm0", x), {.kernel = 3, .stride = 2, .padding = 1});
    for (int block = 1; block <= 4; ++block) {
      const int depth = depths[block - 1];
      for (int layer = 1; layer <= depth; ++layer)
        x = dense_layer(
            "features.denseblock" + std::to_string(block) + ".denselayer" + std::to_string(layer),
            x);
      channels += depth * growth;
      if (block == 4) break;
      channels /= 2;
      x = transition("features.transition" + std::to_string(block), x, channels);
    }
    x = net_.global_average_pool(norm_relu("features.norm5", x));
    x = net_.dense("classifier", x, classes, {.start = {.zero_bias = true}});
    return std::move(net_).finish(x);
  }

 private:
  NodeId conv(const std::string& name, NodeId from, ConvSettings settings) {
    settings.bias = false;
    settings.start.kind = WeightStart::Kind::he_normal_in;
    return net_.conv(name, from, settings);
  }

  NodeId norm_relu(const std::string& name, NodeId from) {
    return net_.relu(net_.batch_norm(name, from));
  }

  NodeId dense_layer(const std::string& name, NodeId from) {
    NodeId x = norm_relu(name + ".norm1", from);
    x = conv(name + ".conv1", x, {.channels = bottleneck});
    x = norm_relu(name + ".norm2", x);
    x = conv(name + ".conv2", x, {.channels = growth, .kernel = 3, .padding = 1});
    return net_.concat({from, x});
  }

  NodeId transition(const std::string& name, NodeId from, std::int64_t channels) {
    const NodeId x = conv(name + ".conv", norm_relu(name + ".norm", from), {.channels = channels});
    return net_.average_pool(x, {.kernel = 2});
  }

  NetBuilder net_;
};

Graph build(const Shape& input, std::int64_t classes) {
  return DenseNetBuilder(input).build(classes);
}

}  // namespace

const ModelDef densenet121_model{
    .name = "densenet121", .input = {3, 224, 224}, .classes = 1000, .build = build};

}  // namespace regatta
