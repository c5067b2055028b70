// What a checkpoint would hold of a network: "conv1.weight" -> "64x3x7x7".
#pragma once

#include <map>
#include <string>

#include "graph/graph.h"

namespace regatta {

inline std::map<std::string, std::string> shapes_by_name(const Graph& graph) {
  std::map<std::string, std::string> shapes;
  for (const Parameter& parameter : graph.parameters())
    shapes[parameter.name] = parameter.shape.text();
  for (const Parameter& state : graph.states()) shapes[state.name] = state.shape.text();
  return shapes;
}

}  // namespace regatta
