#include <algorithm>

#include "graph/op.h"
#include "graph/program.h"

namespace regatta {
namespace {

using Pair = std::pair<std::int64_t, std::int64_t>;

constexpr std::int64_t few_inputs = 4, few_outputs = 8;
// What a row must fill, of a convolution and of pooling: one vector.
constexpr std::int64_t least_width = 16, least_pooled_width = 8;

bool unpadded(const Node& node) {
  return std::ranges::all_of(node.attributes.list("padding"),
                             [](std::int64_t each) { return each == 0; });
}

// A convolution that the CPU has a kernel for planes for.
bool is_thin(const Graph& graph, const Node& node) {
  if (node.op->name != "conv" || node.attributes.integer("groups", 1) != 1) return false;
  const Node& input = graph.node(node.inputs[0]);
  const std::int64_t width = node.attributes.pair("kernel", 0).second;
  return input.inputs.empty() && input.shape.channels() <= few_inputs &&
         node.shape.channels() <= few_outputs && node.shape.width() >= least_width &&
         (width == 3 || width == 5) && node.attributes.pair("stride", 1) == Pair{1, 1} &&
         node.attributes.pair("dilation", 1) == Pair{1, 1};
}

// Pooling that it has one for: by halves, nothing beyond the edges.
bool halves(const Graph& graph, const Node& node) {
  const Shape& in = graph.node(node.inputs[0]).shape;
  return node.op->name == "max_pool" && node.attributes.pair("kernel", 0) == Pair{2, 2} &&
         node.attributes.pair("stride", 2) == Pair{2, 2} &&
         node.attributes.pair("dilation", 1) == Pair{1, 1} && unpadded(node) &&
         2 * node.shape.height() <= in.height() && 2 * node.shape.width() <= in.width() &&
         node.shape.width() >= least_pooled_width;
}

bool takes_planes(const Graph& graph, const Node& node) {
  return node.op->name == "relu" || halves(graph, node) || is_thin(graph, node);
}

// Whether every reader takes planes and hands planes on, down to where they are flattened.
std::vector<bool> read_as_planes(const Graph& graph) {
  std::vector<bool> all(graph.nodes().size());
  for (std::size_t i = graph.nodes().size(); i-- > 0;)
    all[i] = std::ranges::all_of(graph.users(graph.nodes()[i].id), [&](NodeId id) {
      const Node& user = graph.node(id);
      return user.op->name == "flatten" || (takes_planes(graph, user) && all[id.value]);
    });
  return all;
}

bool is_planar_input(const Graph& graph, const Node& node) {
  return node.shape.channels() <= few_inputs &&
         std::ranges::all_of(graph.users(node.id), [&](NodeId user) {
           const Node& reader = graph.node(user);
           return reader.op->name == "conv" && reader.attributes.integer("groups", 1) == 1;
         });
}

}  // namespace

std::vector<Layout> value_layouts(const Graph& graph, Layout preferred) {
  const bool blocked = channel_block(preferred) > 1;
  const std::vector<bool> planes_suffice = read_as_planes(graph);
  std::vector<Layout> layouts;
  for (const Node& node : graph.nodes()) {
    bool planar = node.shape.rank() != 3;
    if (!planar && blocked)
      planar = node.inputs.empty() ? is_planar_input(graph, node)
                                   : layouts[node.inputs[0].value] == Layout::nchw &&
                                         takes_planes(graph, node) && planes_suffice[node.id.value];
    layouts.push_back(planar ? Layout::nchw : preferred);
  }
  return layouts;
}

}  // namespace regatta
