// Residual networks (He et al. 2015): 18, 34, 50 and 101 layers in torchvision's variant, where a
// block's stride sits on its 3x3 convolution, and 20 and 56 layers for small images (section 4.2).
// Where a block changes size, its shortcut is a 1x1 convolution (the paper's option B).
#include <string>
#include <utility>
#include <vector>

#include "models/models.h"
#include "ops/builder.h"

namespace regatta {
namespace {

struct ResNet {
  std::string name;
  std::vector<int> blocks;      // in each layer; a layer has twice the channels of the one before
  bool bottleneck = false;      // 1x1, 3x3, 1x1 convolutions a block instead of 3x3, 3x3
  std::int64_t width = 64;      // of the first layer
  bool quarters_images = true;  // a 7x7 convolution and pooling first; else one 3x3 convolution
};

class ResNetBuilder {
 public:
  ResNetBuilder(const ResNet& resnet, const Shape& input)
      : resnet_(resnet), net_(resnet.name, input), channels_(resnet.width) {}

  Graph build(std::int64_t classes) && {
    NodeId x = stem();
    for (std::size_t layer = 0; layer < resnet_.blocks.size(); ++layer)
      for (int number = 0; number < resnet_.blocks[layer]; ++number) {
        const std::string name = "layer" + std::to_string(layer + 1) + "." + std::to_string(number);
        const std::int64_t stride = layer > 0 && number == 0 ? 2 : 1;
        x = block(name, x, resnet_.width << layer, stride);
      }
    x = net_.dense("fc", net_.global_average_pool(x), classes);
    return std::move(net_).finish(x);
  }

 private:
  NodeId stem() {
    if (!resnet_.quarters_images)
      return net_.relu(conv_norm("conv1", "bn1", net_.input(),
                                 {.channels = resnet_.width, .kernel = 3, .padding = 1}));
    const NodeId x = conv_norm("conv1", "bn1", net_.input(),
                               {.channels = resnet_.width, .kernel = 7, .stride = 2, .padding = 3});
    return net_.max_pool(net_.relu(x), {.kernel = 3, .stride = 2, .padding = 1});
  }

  NodeId conv_norm(const std::string& conv, const std::string& norm, NodeId from,
                   ConvSettings settings) {
    settings.bias = false;  // the norm's own bias would undo it
    settings.start.kind = WeightStart::Kind::he_normal_out;
    return net_.batch_norm(norm, net_.conv(conv, from, settings));
  }

  NodeId block(const std::string& name, NodeId from, std::int64_t width, std::int64_t stride) {
    const std::int64_t channels = resnet_.bottleneck ? 4 * width : width;
    // The shortcut comes first, so that the branch's last norm finds it there and can add it.
    NodeId shortcut = from;
    if (stride != 1 || channels_ != channels)
      shortcut = conv_norm(name + ".downsample.0", name + ".downsample.1", from,
                           {.channels = channels, .stride = stride});
    const NodeId branch = resnet_.bottleneck ? bottleneck_branch(name, from, width, stride)
                                             : basic_branch(name, from, width, stride);
    channels_ = channels;
    return net_.relu(net_.add(branch, shortcut));
  }

  NodeId basic_branch(const std::string& name, NodeId x, std::int64_t width, std::int64_t stride) {
    x = conv_norm(name + ".conv1", name + ".bn1", x,
                  {.channels = width, .kernel = 3, .stride = stride, .padding = 1});
    return conv_norm(name + ".conv2", name + ".bn2", net_.relu(x),
                     {.channels = width, .kernel = 3, .padding = 1});
  }

  NodeId bottleneck_branch(const std::string& name, NodeId x, std::int64_t width,
                           std::int64_t stride) {
    x = conv_norm(name + ".conv1", name + ".bn1", x, {.channels = width});
    x = conv_norm(name + ".conv2", name + ".bn2", net_.relu(x),
                  {.channels = width, .kernel = 3, .stride = stride, .padding = 1});
    return conv_norm(name + ".conv3", name + ".bn3", net_.relu(x), {.channels = 4 * width});
  }

  const ResNet& resnet_;
  NetBuilder net_;
  std::int64_t channels_;  // of the value the next block reads
};

Graph build(const ResNet& resnet, const Shape& input, std::int64_t classes) {
  return ResNetBuilder(resnet, input).build(classes);
}

}  // namespace

const ModelDef resnet18_model{
    .name = "resnet18",
    .input = {3, 224, 224},
    .classes = 1000,
    .build = [](const Shape& input, std::int64_t classes) {
      return build({.name = "resnet18", .blocks = {2, 2, 2, 2}}, input, classes);
    }};

const ModelDef resnet34_model{
    .name = "resnet34",
    .input = {3, 224, 224},
    .classes = 1000,
    .build = [](const Shape& input, std::int64_t classes) {
      return build({.name = "resnet34", .blocks = {3, 4, 6, 3}}, input, classes);
    }};

const ModelDef resnet50_model{
    .name = "resnet50",
    .input = {3, 224, 224},
    .classes = 1000,
    .build = [](const Shape& input, std::int64_t classes) {
      return build({.name = "resnet50", .blocks = {3, 4, 6, 3}, .bottleneck = true}, input,
                   classes);
    }};

const ModelDef resnet101_model{
    .name = "resnet101",
    .input = {3, 224, 224},
    .classes = 1000,
    .build = [](const Shape& input, std::int64_t classes) {
      return build({.name = "resnet101", .blocks = {3, 4, 23, 3}, .bottleneck = true}, input,
                   classes);
    }};

const ModelDef resnet20_model{
    .name = "resnet20",
    .input = {3, 32, 32},
    .classes = 10,
    .build = [](const Shape& input, std::int64_t classes) {
      return build({.name = "resnet20", .blocks = {3, 3, 3}, .width = 16, .quarters_images = false},
                   input, classes);
    }};

const ModelDef resnet56_model{
    .name = "resnet56",
    .input = {3, 32, 32},
    .classes = 10,
    .build = [](const Shape& input, std::int64_t classes) {
      return build({.name = "resnet56", .blocks = {9, 9, 9}, .width = 16, .quarters_images = false},
                   input, classes);
    }};

}  // namespace regatta
