// LeNet-5 (LeCun et al. 1998) as it is taught today: relu and max pooling.
#include <utility>

#include "models/models.h"
#include "ops/builder.h"

namespace regatta {
namespace {

Graph build(const Shape& input, std::int64_t classes) {
  NetBuilder net("lenet5", input);
  NodeId x = net.conv("conv1", net.input(), {.channels = 6, .kernel = 5, .padding = 2});
  x = net.max_pool(net.relu(x), {.kernel = 2});
  x = net.conv("conv2", x, {.channels = 16, .kernel = 5});
  x = net.max_pool(net.relu(x), {.kernel = 2});
  x = net.relu(net.dense("fc1", x, 120));
  x = net.relu(net.dense("fc2", x, 84));
  x = net.dense("fc3", x, classes);
  return std::move(net).finish(x);
}

}  // namespace

const ModelDef lenet5_model{.name = "lenet5", .input = {1, 28, 28}, .classes = 10, .build = build};

}  // namespace regatta
