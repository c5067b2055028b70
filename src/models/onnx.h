// Networks with their weights in ONNX's form, for this set of operators (docs/models.md lists
// them). Protocol buffers stay inside the two sources.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace regatta {

// Parameters and running statistics by name, as the graph shapes them.
using Weights = std::map<std::string, std::vector<float>, std::less<>>;

struct OnnxModel {
  Graph graph;
  Weights weights;                            // of every parameter and state of the graph
  std::vector<std::string> class_names = {};  // of the outputs, if the file tells
};

// Throws InputError, and nothing else, that names the node that is not understood. `input` is the
// image size where the file leaves it open, or another than the file's.
OnnxModel read_onnx(std::span<const std::byte> bytes, const std::optional<Shape>& input = {});

// The network as it infers: the batch is open, dropout passes values on and batch norm uses its
// running statistics. The graph must not be fused. Throws InputError that names a layer ONNX cannot
// express. `class_names`, of the outputs, go into metadata_props.
std::string write_onnx(const Graph& graph, const Weights& weights,
                       const std::vector<std::string>& class_names = {});

}  // namespace regatta
