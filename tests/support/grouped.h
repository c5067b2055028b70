// A network whose batch norm takes its statistics over groups of samples.
#pragma once

#include "graph/graph.h"
#include "graph/op.h"

namespace regatta {

inline Graph grouped(const Graph& graph, std::int64_t group) {
  GraphBuilder builder(graph.name());
  for (const Node& node : graph.nodes()) {
    Attributes attributes = node.attributes;
    if (node.op->meets) attributes.set("group", group);
    builder.add(*node.op, node.name, node.inputs, std::move(attributes));
  }
  return std::move(builder).finish();
}

}  // namespace regatta
