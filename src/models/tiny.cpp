// The smallest network worth training: one convolution, one dense layer.
#include <utility>

#include "models/models.h"
#include "ops/builder.h"

namespace regatta {
namespace {

Graph build(const Shape& input, std::int64_t classes) {
  NetBuilder net("tiny", input);
  NodeId x = net.conv("conv", net.input(), {.channels = 4, .kernel = 3});
  x = net.max_pool(net.relu(x), {.kernel = 2});
  x = net.dense("dense", x, classes);
  return std::move(net).finish(x);
}

}  // namespace

const ModelDef tiny_model{.name = "tiny", .input = {1, 28, 28}, .classes = 10, .build = build};

}  // namespace regatta
