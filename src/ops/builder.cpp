#include "ops/builder.h"

#include <utility>
#include <vector>

#include "ops/ops.h"

namespace regatta {
namespace {

std::vector<std::int64_t> pair(Extent extent) { return {extent.height, extent.width}; }

}  // namespace

NetBuilder::NetBuilder(std::string name, const Shape& input) : graph_(std::move(name)) {
  const auto extents = input.extents();
  graph_.add(input_op, "input", {},
             {{"shape", std::vector<std::int64_t>(extents.begin(), extents.end())}});
}

NodeId NetBuilder::conv(std::string name, NodeId from, const ConvSettings& settings) {
  return graph_.add(conv_op, std::move(name), {from},
                    {{"channels", settings.channels},
                     {"kernel", pair(settings.kernel)},
                     {"stride", pair(settings.stride)},
                     {"padding", pair(settings.padding)},
                     {"bias", std::int64_t{settings.bias}},
                     {"init_normal_fan_out", std::int64_t{settings.init_normal_fan_out}}});
}

NodeId NetBuilder::dense(std::string name, NodeId from, std::int64_t features) {
  if (graph_.node(from).shape.rank() > 1) from = flatten(from);
  return graph_.add(dense_op, std::move(name), {from}, {{"features", features}});
}

NodeId NetBuilder::batch_norm(std::string name, NodeId from) {
  return graph_.add(batch_norm_op, std::move(name), {from}, {});
}

NodeId NetBuilder::relu(NodeId from) { return graph_.add(relu_op, "", {from}, {}); }

NodeId NetBuilder::max_pool(NodeId from, const PoolSettings& settings) {
  return graph_.add(max_pool_op, "", {from},
                    {{"kernel", pair(settings.kernel)},
                     {"stride", pair(settings.stride.value_or(settings.kernel))},
                     {"padding", pair(settings.padding)}});
}

NodeId NetBuilder::global_average_pool(NodeId from) {
  return graph_.add(global_average_pool_op, "", {from}, {});
}

NodeId NetBuilder::flatten(NodeId from) { return graph_.add(flatten_op, "", {from}, {}); }

NodeId NetBuilder::add(NodeId left, NodeId right) {
  return graph_.add(add_op, "", {left, right}, {});
}

Graph NetBuilder::finish(NodeId logits) && {
  graph_.add(cross_entropy_op, "loss", {logits}, {});
  return std::move(graph_).finish();
}

}  // namespace regatta
