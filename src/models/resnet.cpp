#include "models/resnet.h"

#include <utility>

#include "ops/builder.h"

namespace regatta {
namespace {

class ResNetBuilder {
 public:
  ResNetBuilder(const ResNet& resnet, const Shape& input)
      : resnet_(resnet), net_(resnet.name, input) {}

  Graph build(std::int64_t classes) && {
    NodeId x = conv_norm("conv1", "bn1", net_.input(),
                         {.channels = 64, .kernel = 7, .stride = 2, .padding = 3});
    x = net_.max_pool(net_.relu(x), {.kernel = 3, .stride = 2, .padding = 1});
    channels_ = 64;
    for (int layer = 0; layer < 4; ++layer)
      for (int number = 0; number < resnet_.blocks[static_cast<std::size_t>(layer)]; ++number) {
        const std::string name = "layer" + std::to_string(layer + 1) + "." + std::to_string(number);
        const std::int64_t stride = layer > 0 && number == 0 ? 2 : 1;
        x = block(name, x, std::int64_t{64} << layer, stride);
      }
    x = net_.dense("fc", net_.global_average_pool(x), classes);
    return std::move(net_).finish(x);
  }

 private:
  NodeId conv_norm(const std::string& conv, const std::string& norm, NodeId from,
                   ConvSettings settings) {
    settings.bias = false;  // the norm's own bias would undo it
    settings.init_normal_fan_out = true;
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
  std::int64_t channels_ = 0;  // of the value the next block reads
};

}  // namespace

Graph build_resnet(const ResNet& resnet, const Shape& input, std::int64_t classes) {
  return ResNetBuilder(resnet, input).build(classes);
}

}  // namespace regatta
