// AlexNet as torchvision has it, after "One weird trick" (Krizhevsky 2014).
#include <utility>

#include "models/models.h"
#include "ops/builder.h"

namespace regatta {
namespace {

Graph build(const Shape& input, std::int64_t classes) {
  NetBuilder net("alexnet", input);
  NodeId x = net.conv("features.0", net.input(),
                      {.channels = 64, .kernel = 11, .stride = 4, .padding = 2});
  x = net.max_pool(net.relu(x), {.kernel = 3, .stride = 2});
  x = net.conv("features.3", x, {.channels = 192, .kernel = 5, .padding = 2});
  x = net.max_pool(net.relu(x), {.kernel = 3, .stride = 2});
  x = net.relu(net.conv("features.6", x, {.channels = 384, .kernel = 3, .padding = 1}));
  x = net.relu(net.conv("features.8", x, {.channels = 256, .kernel = 3, .padding = 1}));
  x = net.relu(net.conv("features.10", x, {.channels = 256, .kernel = 3, .padding = 1}));
  x = net.max_pool(x, {.kernel = 3, .stride = 2});
  x = net.flatten(net.adaptive_average_pool(x, 6));
  x = net.relu(net.dense("classifier.1", net.dropout("classifier.0", x, 0.5), 4096));
  x = net.relu(net.dense("classifier.4", net.dropout("classifier.3", x, 0.5), 4096));
  x = net.dense("classifier.6", x, classes);
  return std::move(net).finish(x);
}

}  // namespace

const ModelDef alexnet_model{
    .name = "alexnet", .input = {3, 224, 224}, .classes = 1000, .build = build};

}  // namespace regatta
