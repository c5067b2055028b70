#include "graph/program.h"

#include <algorithm>

#include "graph/op.h"

namespace regatta {

std::int64_t statistics_group(const Node& node) {
  return node.op->meets ? node.attributes.integer("group", 0) : 0;
}

bool meets(const Node& node) { return node.op->meets && statistics_group(node) == 0; }

std::int64_t statistics_group(const Graph& graph) {
  std::int64_t group = 0;
  for (const Node& node : graph.nodes()) group = std::max(group, statistics_group(node));
  return group;
}

std::int64_t granule_of(const Graph& graph) {
  return std::max<std::int64_t>(1, statistics_group(graph));
}

std::int64_t granules_of(const Graph& graph, std::int64_t samples) {
  const std::int64_t granule = granule_of(graph);
  return (samples + granule - 1) / granule;
}

namespace {

// The instructions of forward that run again before a segment's backward: those whose values or
// stashes it reads, directly or to compute others. Values that other segments read are kept in
// buffers of their own.
Part recomputation(const Graph& graph, const GradientFlow& flow, NodeId first, NodeId last) {
  std::vector<bool> needed(graph.nodes().size());
  for (std::uint32_t value = last.value + 1; value-- > first.value;) {
    const Node& node = graph.node(NodeId{value});
    const bool goes_back = flow.wanted(node.id);
    bool stays = false, read = goes_back && node.op->backward_reads_output;
    for (const NodeId user : graph.users(node.id)) {
      stays |= user > last;
      read |= user <= last && (needed[user.value] ||
                               (flow.wanted(user) && graph.node(user).op->backward_reads_input));
    }
    needed[value] = (read && !stays) || (goes_back && node.op->stash_bytes);
  }
  Part part;
  for (NodeId id = first; id <= last; ++id.value)
    if (needed[id.value])
      part.push_back({id, meets(graph.node(id)) ? Work::normalise : Work::forward});
  return part;
}

}  // namespace

Program program_of(const Graph& graph, NodeId first, NodeId last, Pass pass, bool cut,
                   bool split_backward, bool recomputed) {
  const GradientFlow flow(graph);
  Program program;
  program.forward.emplace_back();
  const bool meeting = pass == Pass::train && cut;
  for (NodeId id = first; id <= last; ++id.value) {
    if (pass == Pass::train && statistics_group(graph.node(id)) > 0) program.grouped.push_back(id);
    if (meeting && meets(graph.node(id))) {
      program.forward.back().push_back({id, Work::statistics});
      program.meetings.push_back(id);
      program.forward.push_back({{id, Work::normalise}});
    } else {
      program.forward.back().push_back({id, Work::forward});
    }
  }
  if (pass == Pass::evaluate) return program;

  program.backward.push_back(recomputed ? recomputation(graph, flow, first, last) : Part{});
  if (split_backward) program.weight_gradients.emplace_back();
  for (std::uint32_t value = last.value + 1; value-- > first.value;) {
    const NodeId id{value};
    if (!flow.wanted(id)) continue;
    if (meeting && meets(graph.node(id))) {
      program.backward.back().push_back({id, Work::gradient_sums});
      program.backward.push_back({{id, Work::gradient_apply}});
      if (split_backward) program.weight_gradients.emplace_back();
    } else if (split_backward && graph.node(id).op->splits_backward) {
      // A first layer has no input gradient to give.
      if (flow.passes_on(id)) program.backward.back().push_back({id, Work::input_gradient});
      program.weight_gradients.back().push_back({id, Work::weight_gradient});
    } else {
      program.backward.back().push_back({id, Work::backward});
    }
  }
  return program;
}

GradientFlow::GradientFlow(const Graph& graph)
    : wanted_(graph.nodes().size()), modes_(graph.nodes().size()) {
  for (const Node& node : graph.nodes()) {
    const bool before = std::ranges::any_of(
        node.inputs, [&](NodeId input) { return static_cast<bool>(wanted_[input.value]); });
    wanted_[node.id.value] = before || !node.parameters.empty();
  }
  std::vector<bool> written(graph.nodes().size());
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    for (const NodeId input : node->inputs) {
      GradientMode mode = GradientMode::none;
      if (wanted_[input.value]) {
        mode = written[input.value] ? GradientMode::add : GradientMode::write;
        written[input.value] = true;
      }
      modes_[node->id.value].push_back(mode);
    }
  }
}

bool GradientFlow::passes_on(NodeId node) const {
  return std::ranges::any_of(modes_[node.value],
                             [](GradientMode mode) { return mode != GradientMode::none; });
}

double share_of_backward(const GradientFlow& flow, const Instruction& step) {
  const bool half = step.work == Work::input_gradient || step.work == Work::weight_gradient;
  return half && flow.passes_on(step.node) ? 0.5 : 1;
}

std::vector<Dtype> value_dtypes(const Graph& graph, Precision precision) {
  std::vector<Dtype> dtypes;
  for (const Node& node : graph.nodes()) {
    const bool exact = node.id == graph.logits() || node.id == graph.loss();
    dtypes.push_back(precision == Precision::bf16 && !exact ? Dtype::bf16 : Dtype::f32);
  }
  return dtypes;
}

std::int64_t input_channels(const Graph& graph, Layout preferred, Precision precision) {
  const Shape& shape = graph.node(graph.input()).shape;
  const bool padded = preferred == Layout::nhwc && precision != Precision::fp32 &&
                      shape.rank() == 3 &&
                      std::ranges::all_of(graph.users(graph.input()), [&](NodeId user) {
                        const Node& node = graph.node(user);
                        return node.op->name == "conv" && node.attributes.integer("groups", 1) == 1;
                      });
  const std::int64_t whole = !padded ? 1 : precision == Precision::bf16 ? 8 : 4;
  return (shape.channels() + whole - 1) / whole * whole;
}

}  // namespace regatta
