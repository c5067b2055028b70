#include <unordered_set>

#include "base/dtype.h"
#include "graph/op.h"
#include "models/models.h"

namespace regatta {
namespace {

// Flattening makes no new memory: its value is the image's.
NodeId memory_of(const Graph& graph, NodeId value) {
  while (graph.node(value).op->name == "flatten") value = graph.node(value).inputs.front();
  return value;
}

std::int64_t activation_bytes(const Graph& graph) {
  std::unordered_set<NodeId> kept;
  std::int64_t bytes = 0;
  for (const Node& node : graph.nodes()) {
    if (node.op->backward_reads_output) kept.insert(memory_of(graph, node.id));
    if (node.op->backward_reads_input)
      for (const NodeId input : node.inputs) kept.insert(memory_of(graph, input));
    if (node.op->stash_bytes) bytes += node.op->stash_bytes(node, node.shape.elements());
  }
  const auto element_bytes = static_cast<std::int64_t>(dtype_bytes(Dtype::f32));
  for (const NodeId value : kept) bytes += graph.node(value).shape.elements() * element_bytes;
  return bytes;
}

}  // namespace

ModelSummary summarise(const Graph& graph) {
  ModelSummary summary;
  for (const Parameter& parameter : graph.parameters())
    summary.parameters += parameter.shape.elements();
  for (const Node& node : graph.nodes()) {
    if (node.op->name == "conv" || node.op->name == "dense") {
      const Cost cost = node.op->cost(node, input_shapes(graph, node));
      summary.multiply_adds += static_cast<std::int64_t>(cost.forward_flops / 2);
    }
    if (node.op->meets) ++summary.meeting_points;
  }
  summary.activation_bytes = activation_bytes(graph);
  return summary;
}

}  // namespace regatta
