#include "graph/graph.h"

#include <set>

#include "base/error.h"
#include "graph/op.h"

namespace regatta {
namespace {

template <class T>
const T* held(const std::map<std::string, Attributes::Value>& values, const std::string& name) {
  const auto found = values.find(name);
  return found == values.end() ? nullptr : std::get_if<T>(&found->second);
}

// Kernels count the elements of a tensor in 31 bits here and there; and no count may overflow.
void require_size(const Node& node, const Shape& shape, const std::string& what) {
  double elements = 1;
  for (const std::int64_t extent : shape.extents()) elements *= static_cast<double>(extent);
  if (elements > INT32_MAX)
    throw InputError(std::string(node.op->name) + " '" + node.name + "': " + what + " of " +
                     shape.text() + " is too large: at most " + std::to_string(INT32_MAX) +
                     " numbers");
}

}  // namespace

std::int64_t Attributes::integer(const std::string& name, std::int64_t otherwise) const {
  const auto* value = held<std::int64_t>(values_, name);
  return value ? *value : otherwise;
}

double Attributes::real(const std::string& name, double otherwise) const {
  if (const auto* whole = held<std::int64_t>(values_, name)) return static_cast<double>(*whole);
  const auto* value = held<double>(values_, name);
  return value ? *value : otherwise;
}

std::pair<std::int64_t, std::int64_t> Attributes::pair(const std::string& name,
                                                       std::int64_t otherwise) const {
  if (const auto* one = held<std::int64_t>(values_, name)) return {*one, *one};
  const auto* list = held<std::vector<std::int64_t>>(values_, name);
  if (!list || list->size() != 2) return {otherwise, otherwise};
  return {(*list)[0], (*list)[1]};
}

std::vector<std::int64_t> Attributes::list(const std::string& name) const {
  if (const auto* one = held<std::int64_t>(values_, name)) return {*one};
  const auto* list = held<std::vector<std::int64_t>>(values_, name);
  return list ? *list : std::vector<std::int64_t>{};
}

NodeId GraphBuilder::add(const OpDef& op, std::string name, std::vector<NodeId> inputs,
                         Attributes attributes) {
  Node node;
  node.id = NodeId{static_cast<std::uint32_t>(graph_.nodes_.size())};
  node.op = &op;
  node.name = name.empty() ? std::string(op.name) + std::to_string(node.id.value) : std::move(name);
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  std::vector<Shape> shapes;
  for (const NodeId input : node.inputs) {
    if (input.value >= graph_.nodes_.size())
      throw InputError(std::string(op.name) + " '" + node.name + "': its input does not exist yet");
    shapes.push_back(graph_.node(input).shape);
  }
  for (const Node& other : graph_.nodes_)
    if (other.name == node.name)
      throw InputError(std::string(op.name) + " '" + node.name + "': the name is taken");
  node.shape = op.infer(node, shapes);
  require_size(node, node.shape, "its value");
  const auto declare = [&](auto specs_of, std::vector<Parameter>& all, auto& mine) {
    if (!specs_of) return;
    for (TensorSpec& spec : specs_of(node, shapes)) {
      require_size(node, spec.shape, "its " + spec.suffix);
      mine.push_back({static_cast<std::uint32_t>(all.size())});
      all.push_back({node.name + "." + spec.suffix, spec.shape, spec.init, node.id});
    }
  };
  declare(op.parameters, graph_.parameters_, node.parameters);
  declare(op.states, graph_.states_, node.states);
  for (const NodeId input : node.inputs) graph_.users_[input.value].push_back(node.id);
  graph_.users_.emplace_back();
  graph_.nodes_.push_back(std::move(node));
  return graph_.nodes_.back().id;
}

Graph GraphBuilder::finish() && {
  const auto fail = [&](const std::string& what) {
    throw InputError("model '" + graph_.name_ + "': " + what);
  };
  if (graph_.nodes_.size() < 3) fail("it needs an input, an operator and a loss");
  for (const Node& node : graph_.nodes_) {
    const bool first = node.id.value == 0;
    const bool last = &node == &graph_.nodes_.back();
    if (first != node.inputs.empty()) fail("'" + node.name + "' must read what the input leads to");
    if (last != graph_.users(node.id).empty())
      fail(last ? "the loss must come last" : "nothing reads '" + node.name + "'");
  }
  if (graph_.parameters_.empty()) fail("it has no parameters to train");
  return std::move(graph_);
}

std::vector<Shape> input_shapes(const Graph& graph, const Node& node) {
  std::vector<Shape> shapes;
  for (const NodeId input : node.inputs) shapes.push_back(graph.node(input).shape);
  return shapes;
}

}  // namespace regatta
