#include "ops/builder.h"

#include <utility>
#include <vector>

#include "ops/ops.h"

namespace regatta {
namespace {

std::vector<std::int64_t> pair(Extent extent) { return {extent.height, extent.width}; }

// Height and width where both sides are alike, else all four.
std::vector<std::int64_t> sides(const Padding& padding) {
  if (padding.top == padding.bottom && padding.left == padding.right)
    return {padding.top, padding.left};
  return {padding.top, padding.left, padding.bottom, padding.right};
}

// What most layers leave alone is left out.
void set_dilation(Attributes& attributes, Extent dilation) {
  if (dilation.height != 1 || dilation.width != 1) attributes.set("dilation", pair(dilation));
}

Attributes pool_attributes(const PoolSettings& settings) {
  Attributes attributes{{"kernel", pair(settings.kernel)},
                        {"stride", pair(settings.stride.value_or(settings.kernel))},
                        {"padding", sides(settings.padding)}};
  if (settings.ceil) attributes.set("ceil", std::int64_t{1});
  return attributes;
}

// Only what differs from the usual stands in the attributes.
void set_start(Attributes& attributes, const WeightStart& start) {
  if (start.kind != WeightStart::Kind::usual)
    attributes.set("init", static_cast<std::int64_t>(start.kind));
  if (start.kind == WeightStart::Kind::normal) attributes.set("init_deviation", start.deviation);
  if (start.zero_bias) attributes.set("init_zero_bias", std::int64_t{1});
}

}  // namespace

NetBuilder::NetBuilder(std::string name, const Shape& input) : graph_(std::move(name)) {
  const auto extents = input.extents();
  graph_.add(input_op, "input", {},
             {{"shape", std::vector<std::int64_t>(extents.begin(), extents.end())}});
}

NodeId NetBuilder::conv(std::string name, NodeId from, const ConvSettings& settings) {
  Attributes attributes{{"channels", settings.channels},
                        {"kernel", pair(settings.kernel)},
                        {"stride", pair(settings.stride)},
                        {"padding", sides(settings.padding)},
                        {"bias", std::int64_t{settings.bias}}};
  set_dilation(attributes, settings.dilation);
  if (settings.groups != 1) attributes.set("groups", settings.groups);
  set_start(attributes, settings.start);
  return graph_.add(conv_op, std::move(name), {from}, std::move(attributes));
}

NodeId NetBuilder::dense(std::string name, NodeId from, std::int64_t features,
                         const DenseSettings& settings) {
  if (graph_.node(from).shape.rank() > 1) from = flatten(from);
  Attributes attributes{{"features", features}, {"bias", std::int64_t{settings.bias}}};
  set_start(attributes, settings.start);
  return graph_.add(dense_op, std::move(name), {from}, std::move(attributes));
}

NodeId NetBuilder::batch_norm(std::string name, NodeId from, const BatchNormSettings& settings) {
  const BatchNormSettings usual;
  Attributes attributes;
  if (settings.epsilon != usual.epsilon) attributes.set("epsilon", settings.epsilon);
  if (settings.momentum != usual.momentum) attributes.set("momentum", settings.momentum);
  return graph_.add(batch_norm_op, std::move(name), {from}, std::move(attributes));
}

NodeId NetBuilder::layer_norm(std::string name, NodeId from, double epsilon) {
  return graph_.add(layer_norm_op, std::move(name), {from}, {{"epsilon", epsilon}});
}

NodeId NetBuilder::relu(NodeId from) { return graph_.add(relu_op, "", {from}, {}); }
NodeId NetBuilder::relu6(NodeId from) { return graph_.add(relu6_op, "", {from}, {}); }
NodeId NetBuilder::leaky_relu(NodeId from, double slope) {
  return graph_.add(leaky_relu_op, "", {from}, {{"slope", slope}});
}
NodeId NetBuilder::sigmoid(NodeId from) { return graph_.add(sigmoid_op, "", {from}, {}); }
NodeId NetBuilder::tanh(NodeId from) { return graph_.add(tanh_op, "", {from}, {}); }
NodeId NetBuilder::gelu(NodeId from, bool by_tanh) {
  return graph_.add(gelu_op, "", {from}, {{"tanh", std::int64_t{by_tanh}}});
}

NodeId NetBuilder::max_pool(NodeId from, const PoolSettings& settings) {
  Attributes attributes = pool_attributes(settings);
  set_dilation(attributes, settings.dilation);
  return graph_.add(max_pool_op, "", {from}, std::move(attributes));
}

NodeId NetBuilder::average_pool(NodeId from, const PoolSettings& settings) {
  Attributes attributes = pool_attributes(settings);
  set_dilation(attributes, settings.dilation);  // refused, if it is any
  if (!settings.count_padding) attributes.set("count_padding", std::int64_t{0});
  return graph_.add(average_pool_op, "", {from}, std::move(attributes));
}

NodeId NetBuilder::adaptive_average_pool(NodeId from, Extent output) {
  return graph_.add(adaptive_average_pool_op, "", {from}, {{"output", pair(output)}});
}

NodeId NetBuilder::local_response_norm(NodeId from, const LocalResponseNormSettings& settings) {
  return graph_.add(local_response_norm_op, "", {from},
                    {{"size", settings.size},
                     {"alpha", settings.alpha},
                     {"beta", settings.beta},
                     {"k", settings.k}});
}

NodeId NetBuilder::global_average_pool(NodeId from) {
  return graph_.add(global_average_pool_op, "", {from}, {});
}

NodeId NetBuilder::flatten(NodeId from) { return graph_.add(flatten_op, "", {from}, {}); }

NodeId NetBuilder::add(NodeId left, NodeId right) {
  return graph_.add(add_op, "", {left, right}, {});
}

NodeId NetBuilder::concat(const std::vector<NodeId>& parts) {
  if (parts.size() == 1) return parts.front();
  std::vector<NodeId> inputs;
  for (const NodeId part : parts) {
    if (inputs.size() == most_inputs) inputs = {graph_.add(concat_op, "", inputs, {})};
    inputs.push_back(part);
  }
  return graph_.add(concat_op, "", std::move(inputs), {});
}

NodeId NetBuilder::dropout(std::string name, NodeId from, double probability) {
  return graph_.add(dropout_op, std::move(name), {from}, {{"probability", probability}});
}

NodeId NetBuilder::dropout(NodeId from, double probability) {
  return dropout("", from, probability);
}

Graph NetBuilder::finish(NodeId logits) && {
  graph_.add(cross_entropy_op, "loss", {logits}, {});
  return std::move(graph_).finish();
}

}  // namespace regatta
