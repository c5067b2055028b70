// VGG (Simonyan and Zisserman 2014), configurations A and D, without batch norm.
#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

#include "models/models.h"
#include "ops/builder.h"

namespace regatta {
namespace {

// For each of the five blocks, which end with pooling: so many 3x3 convolutions.
using Depths = std::initializer_list<int>;

Graph build(const char* name, const Depths& depths, const Shape& input, std::int64_t classes) {
  const WeightStart conv_start{.kind = WeightStart::Kind::he_normal_out, .zero_bias = true};
  const WeightStart dense_start{
      .kind = WeightStart::Kind::normal, .deviation = 0.01, .zero_bias = true};
  NetBuilder net(name, input);
  NodeId x = net.input();
  std::int64_t channels = 64;
  int index = 0;  // torchvision counts convolutions, relus and poolings
  for (const int depth : depths) {
    for (int i = 0; i < depth; ++i, index += 2)
      x = net.relu(
          net.conv("features." + std::to_string(index), x,
                   {.channels = channels, .kernel = 3, .padding = 1, .start = conv_start}));
    x = net.max_pool(x, {.kernel = 2});
    ++index;
    channels = std::min<std::int64_t>(2 * channels, 512);
  }
  x = net.flatten(net.adaptive_average_pool(x, 7));
  x = net.relu(net.dense("classifier.0", x, 4096, {.start = dense_start}));
  x = net.dropout("classifier.2", x, 0.5);
  x = net.relu(net.dense("classifier.3", x, 4096, {.start = dense_start}));
  x = net.dropout("classifier.5", x, 0.5);
  x = net.dense("classifier.6", x, classes, {.start = dense_start});
  return std::move(net).finish(x);
}

}  // namespace

const ModelDef vgg11_model{.name = "vgg11",
                           .input = {3, 224, 224},
                           .classes = 1000,
                           .build = [](const Shape& input, std::int64_t classes) {
                             return build("vgg11", {1, 1, 2, 2, 2}, input, classes);
                           }};

const ModelDef vgg16_model{.name = "vgg16",
                           .input = {3, 224, 224},
                           .classes = 1000,
                           .build = [](const Shape& input, std::int64_t classes) {
                             return build("vgg16", {2, 2, 3, 3, 3}, input, classes);
                           }};

}  // namespace regatta
