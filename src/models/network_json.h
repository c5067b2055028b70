// Networks as JSON: what `--model net.json` reads, `regatta models NAME --export net.json` writes
// and run.json keeps of a network that is not of the zoo. docs/models.md tells the format.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "graph/graph.h"

namespace regatta {

// The network as it was written, before fusing: fused operators have no form in a file.
Json json_of(const Graph& graph);

// The same with a layer to the line.
std::string network_text(const Graph& graph);

// The graph of a network file, for images of `input` if that is given. Throws InputError, and
// nothing else, that names every layer with a mistake and what is wrong with it.
Graph graph_from_json(std::string_view text, const std::optional<Shape>& input = {});
Graph graph_of_json(const Json& network, const std::optional<Shape>& input = {});

}  // namespace regatta
