// graph/: a network as an immutable graph of operators, with shapes, FLOPs and bytes per sample,
// and the passes over it that do not depend on any machine (fusing). What an operator *is* comes
// from ops/ as rows of OpDef; the graph only holds them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/shape.h"

namespace regatta {

struct OpDef;

// No operator reads more values than this.
constexpr std::size_t most_inputs = 8;

// An operator's settings by name: "stride" -> {2, 2}, "relu" -> 1, "epsilon" -> 1e-5.
class Attributes {
 public:
  using Value = std::variant<std::int64_t, double, std::vector<std::int64_t>>;

  Attributes() = default;
  Attributes(std::initializer_list<std::pair<const std::string, Value>> values) : values_(values) {}

  void set(const std::string& name, Value value) { values_[name] = std::move(value); }
  bool has(const std::string& name) const { return values_.contains(name); }
  std::int64_t integer(const std::string& name, std::int64_t otherwise) const;
  double real(const std::string& name, double otherwise) const;
  bool flag(const std::string& name) const { return integer(name, 0) != 0; }
  // A pair such as kernel height and width; a missing one is {otherwise, otherwise}.
  std::pair<std::int64_t, std::int64_t> pair(const std::string& name, std::int64_t otherwise) const;
  // All numbers of a list; a single one is a list of one, a missing one is empty.
  std::vector<std::int64_t> list(const std::string& name) const;
  const std::map<std::string, Value>& values() const { return values_; }
  bool operator==(const Attributes&) const = default;

 private:
  std::map<std::string, Value> values_;
};

// How a tensor starts out.
struct Init {
  enum class Kind { zeros, ones, uniform, normal } kind = Kind::zeros;
  double scale = 0;  // uniform: drawn from [-scale, scale]; normal: standard deviation
  bool operator==(const Init&) const = default;
};

struct Parameter {
  std::string name;  // "layer1.0.conv1.weight": torchvision's
  Shape shape;
  Init init;
  NodeId node;  // the one operator that uses it
};

struct Node {
  NodeId id;
  const OpDef* op = nullptr;
  std::string name;
  std::vector<NodeId> inputs;
  Attributes attributes;
  Shape shape;                          // of its value, per sample
  std::vector<ParameterId> parameters;  // trained, in the operator's order
  std::vector<StateId> states;          // kept but not trained, likewise
};

// Nodes are in topological order: inputs come before users. Node 0 is the input; the last node is
// the loss, and its only input is the logits.
class Graph {
 public:
  const std::vector<Node>& nodes() const { return nodes_; }
  const Node& node(NodeId id) const { return nodes_[id.value]; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::vector<Parameter>& states() const { return states_; }
  const Parameter& parameter(ParameterId id) const { return parameters_[id.value]; }
  const Parameter& state(StateId id) const { return states_[id.value]; }
  const std::vector<NodeId>& users(NodeId id) const { return users_[id.value]; }

  NodeId input() const { return NodeId{0}; }
  NodeId loss() const { return nodes_.back().id; }
  NodeId logits() const { return nodes_.back().inputs.front(); }
  std::int64_t classes() const { return node(logits()).shape.elements(); }
  const std::string& name() const { return name_; }

 private:
  friend class GraphBuilder;
  std::string name_;
  std::vector<Node> nodes_;
  std::vector<Parameter> parameters_, states_;
  std::vector<std::vector<NodeId>> users_;
};

// Adds nodes one by one, checking each as it comes.
class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name) { graph_.name_ = std::move(name); }

  // Infers the shape and declares the operator's parameters as "<name>.<suffix>". Throws InputError
  // that names the node. An empty name gets "<op><number>".
  NodeId add(const OpDef& op, std::string name, std::vector<NodeId> inputs, Attributes attributes);

  const Node& node(NodeId id) const { return graph_.node(id); }
  Graph finish() &&;  // checks that one input leads and one loss ends the graph

 private:
  Graph graph_;
};

// The same network with relu, and residual addition before it, taken into the batch norm,
// convolution or dense operator that feeds them: one pass over memory instead of three. A relu
// between convolution and max pooling moves behind the pooling. The numbers are the same.
Graph fuse(const Graph& graph);

}  // namespace regatta
