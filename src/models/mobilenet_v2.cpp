// MobileNetV2 (Sandler et al. 2018): inverted residuals with depthwise convolutions.
#include <string>
#include <utility>

#include "models/models.h"
#include "ops/builder.h"

namespace regatta {
namespace {

class MobileNetBuilder {
 public:
  explicit MobileNetBuilder(const Shape& input) : net_("mobilenet_v2", input) {}

  Graph build(std::int64_t classes) && {
    struct Stage {
      std::int64_t expansion, channels;
      int blocks;
      std::int64_t stride;  // of the first block
    };
    static constexpr Stage stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                       {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    NodeId x = conv_norm_relu("features.0", net_.input(),
                              {.channels = 32, .kernel = 3, .stride = 2, .padding = 1});
    channels_ = 32;
    int number = 1;
    for (const Stage& stage : stages)
      for (int i = 0; i < stage.blocks; ++i, ++number)
        x = block("features." + std::to_string(number) + ".conv.", x, stage.expansion,
                  stage.channels, i == 0 ? stage.stride : 1);
    x = conv_norm_relu("features." + std::to_string(number), x, {.channels = 1280});
    x = net_.dropout("classifier.0", net_.global_average_pool(x), 0.2);
    x = net_.dense("classifier.1", x, classes,
                   {.start = {.kind = WeightStart::Kind::normal, .zero_bias = true}});
    return std::move(net_).finish(x);
  }

 private:
  NodeId conv(const std::string& name, NodeId from, ConvSettings settings) {
    settings.bias = false;
    settings.start.kind = WeightStart::Kind::he_normal_out;
    return net_.conv(name, from, settings);
  }

  NodeId conv_norm_relu(const std::string& name, NodeId from, const ConvSettings& settings) {
    return net_.relu6(net_.batch_norm(name + ".1", conv(name + ".0", from, settings)));
  }

  NodeId block(const std::string& prefix, NodeId from, std::int64_t expansion,
               std::int64_t channels, std::int64_t stride) {
    const std::int64_t wide = channels_ * expansion;
    int index = 0;
    const auto next = [&] { return prefix + std::to_string(index++); };
    NodeId x = from;
    if (expansion != 1) x = conv_norm_relu(next(), x, {.channels = wide});
    x = conv_norm_relu(
        next(), x, {.channels = wide, .kernel = 3, .stride = stride, .padding = 1, .groups = wide});
    x = conv(next(), x, {.channels = channels});
    x = net_.batch_norm(next(), x);
    const bool residual = stride == 1 && channels_ == channels;
    channels_ = channels;
    return residual ? net_.add(x, from) : x;
  }

  NetBuilder net_;
  std::int64_t channels_ = 0;  // of the value the next block reads
};

Graph build(const Shape& input, std::int64_t classes) {
  return MobileNetBuilder(input).build(classes);
}

}  // namespace

const ModelDef mobilenet_v2_model{
    .name = "mobilenet_v2", .input = {3, 224, 224}, .classes = 1000, .build = build};

}  // namespace regatta
