#include <algorithm>
#include <optional>
#include <unordered_map>

#include "graph/graph.h"
#include "graph/op.h"

namespace regatta {
namespace {

bool takes_relu(const OpDef& op) {
  return op.name == "batch_norm" || op.name == "conv" || op.name == "dense";
}

bool plain(const Node& node) { return !node.attributes.flag("relu") && node.inputs.size() == 1; }

// The batch norm an addition can be taken into: one that only the addition reads. The later input
// is preferred, since by then the other one exists.
std::optional<NodeId> host_of_addition(const Graph& graph, const Node& add) {
  const NodeId late = std::max(add.inputs[0], add.inputs[1]);
  const Node& host = graph.node(late);
  const bool possible = add.inputs[0] != add.inputs[1] && host.op->name == "batch_norm" &&
                        plain(host) && graph.users(late).size() == 1;
  return possible ? std::optional(late) : std::nullopt;
}

}  // namespace

namespace {

// max_pool(relu(x)) as relu(max_pool(x)): the same values and gradients (the largest of a window
// is positive in both or zero in both), and the relu sees only the values that won. After a batch
// norm the relu costs nothing where it is.
Graph pool_before_relu(const Graph& graph) {
  GraphBuilder builder(graph.name());
  std::unordered_map<NodeId, NodeId> renamed;
  const auto swaps = [&](const Node& relu) {
    return relu.op->name == "relu" && graph.users(relu.id).size() == 1 &&
           graph.node(relu.inputs[0]).op->name == "conv" &&
           graph.node(graph.users(relu.id).front()).op->name == "max_pool";
  };
  for (const Node& node : graph.nodes()) {
    if (swaps(node)) {
      renamed[node.id] = renamed.at(node.inputs[0]);  // its pool reads past it and adds it after
      continue;
    }
    std::vector<NodeId> inputs;
    for (const NodeId input : node.inputs) inputs.push_back(renamed.at(input));
    NodeId made = builder.add(*node.op, node.name, inputs, node.attributes);
    if (node.op->name == "max_pool" && swaps(graph.node(node.inputs[0]))) {
      const Node& relu = graph.node(node.inputs[0]);
      made = builder.add(*relu.op, relu.name, {made}, relu.attributes);
    }
    renamed[node.id] = made;
  }
  return std::move(builder).finish();
}

}  // namespace

Graph fuse(const Graph& original) {
  const Graph graph = pool_before_relu(original);
  // For each node that disappears: the earlier node that makes its value.
  std::unordered_map<NodeId, NodeId> made_by;
  std::unordered_map<NodeId, NodeId> residual_of;  // host -> what it adds
  std::unordered_map<NodeId, bool> with_relu;
  const auto maker = [&](NodeId id) {
    for (auto found = made_by.find(id); found != made_by.end(); found = made_by.find(id))
      id = found->second;
    return id;
  };
  for (const Node& node : graph.nodes()) {
    if (node.op->name == "add") {
      if (const auto host = host_of_addition(graph, node)) {
        const NodeId other = node.inputs[0] == *host ? node.inputs[1] : node.inputs[0];
        made_by[node.id] = *host;
        residual_of[*host] = other;
      }
    } else if (node.op->name == "relu") {
      const NodeId before = node.inputs[0];
      const NodeId host = maker(before);
      if (graph.users(before).size() == 1 && takes_relu(*graph.node(host).op) &&
          plain(graph.node(host)) && !with_relu[host]) {
        made_by[node.id] = host;
        with_relu[host] = true;
      }
    }
  }

  GraphBuilder builder(graph.name());
  std::unordered_map<NodeId, NodeId> renamed;
  for (const Node& node : graph.nodes()) {
    if (made_by.contains(node.id)) continue;
    std::vector<NodeId> inputs;
    for (const NodeId input : node.inputs) inputs.push_back(renamed.at(maker(input)));
    Attributes attributes = node.attributes;
    if (const auto residual = residual_of.find(node.id); residual != residual_of.end())
      inputs.push_back(renamed.at(maker(residual->second)));
    if (with_relu[node.id]) attributes.set("relu", std::int64_t{1});
    renamed[node.id] = builder.add(*node.op, node.name, std::move(inputs), std::move(attributes));
  }
  return std::move(builder).finish();
}

}  // namespace regatta
