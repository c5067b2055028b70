#include "tasks/memory.h"

#include <algorithm>
#include <array>
#include <limits>

#include "graph/op.h"

namespace regatta {
namespace {

// The span from the first to the last instruction that uses a tensor, by their numbers.
struct Life {
  std::size_t born = std::numeric_limits<std::size_t>::max();
  std::size_t dies = 0;
  bool meets(const Life& other) const { return born <= other.dies && other.born <= dies; }
};

// A tensor inside a segment. If its segment is computed again, it has one life in forward and
// another in backward.
struct Tensor {
  std::size_t* offset;  // where the answer goes
  std::size_t bytes = 0;
  std::array<Life, 2> lives;

  void used_at(std::size_t time, std::size_t life) {
    lives[life].born = std::min(lives[life].born, time);
    lives[life].dies = std::max(lives[life].dies, time);
  }
  bool lives_beside(const Tensor& other) const {
    return lives[0].meets(other.lives[0]) || lives[1].meets(other.lives[1]);
  }
  bool is_used() const { return lives[0].born <= lives[0].dies || lives[1].born <= lives[1].dies; }
};

// Largest first, each at the lowest gap among those alive at the same time.
std::size_t place(std::vector<Tensor>& tensors) {
  std::ranges::stable_sort(tensors,
                           [](const Tensor& a, const Tensor& b) { return a.bytes > b.bytes; });
  std::size_t total = 0;
  std::vector<const Tensor*> placed;  // by offset
  for (Tensor& tensor : tensors) {
    std::size_t offset = 0;
    for (const Tensor* other : placed) {
      if (!tensor.lives_beside(*other) || *other->offset + other->bytes <= offset) continue;
      if (offset + tensor.bytes <= *other->offset) break;
      offset = *other->offset + other->bytes;
    }
    *tensor.offset = offset;
    total = std::max(total, offset + tensor.bytes);
    placed.insert(
        std::ranges::upper_bound(placed, offset, {}, [](const Tensor* t) { return *t->offset; }),
        &tensor);
  }
  return total;
}

}  // namespace

std::vector<ValueForm> value_forms(const Graph& graph, Layout layout, Precision precision) {
  const std::vector<Layout> layouts = value_layouts(graph, layout);
  const std::vector<Dtype> dtypes = value_dtypes(graph, precision);
  std::vector<ValueForm> forms;
  for (const Node& node : graph.nodes()) {
    const Layout mine = layouts[node.id.value];
    const std::int64_t elements =
        node.id == graph.input() && mine == Layout::nhwc
            ? input_channels(graph, layout, precision) * node.shape.height() * node.shape.width()
            : padded_elements(node.shape, mine);
    forms.push_back({mine, dtypes[node.id.value], elements});
  }
  return forms;
}

Borders borders_of(const Graph& graph, NodeId first, NodeId last, Pass pass,
                   const Program& program) {
  Borders borders;
  borders.values.resize(graph.nodes().size());
  for (NodeId id = first; id <= last; ++id.value)
    borders.values[id.value] =
        id == graph.loss() || (id == graph.logits() && pass == Pass::evaluate) ||
        std::ranges::any_of(graph.users(id), [&](NodeId u) { return u > last; });
  borders.gradients = borders.values;
  for (const Part& part : program.weight_gradients)
    for (const Instruction& step : part) {
      const Node& node = graph.node(step.node);
      borders.gradients[node.id.value] = true;
      if (node.op->backward_reads_output) borders.values[node.id.value] = true;
      if (!node.op->backward_reads_input) continue;
      for (const NodeId input : node.inputs)
        if (input >= first) borders.values[input.value] = true;
    }
  return borders;
}

ArenaMap plan_arena(const Graph& graph, NodeId first, NodeId last, Pass pass,
                    const Program& program, const std::vector<ValueForm>& forms,
                    std::int64_t capacity, bool recomputed) {
  const std::size_t nodes = graph.nodes().size();
  ArenaMap map;
  map.values.assign(nodes, ArenaMap::absent);
  map.gradients.assign(nodes, ArenaMap::absent);
  map.stashes.assign(nodes, ArenaMap::absent);

  const GradientFlow flow(graph);
  const Borders borders = borders_of(graph, first, last, pass, program);
  std::vector<Tensor> values(nodes), gradients(nodes), stashes(nodes);
  const auto value_inside = [&](NodeId id) {
    return id >= first && id <= last && !borders.values[id.value];
  };
  const auto gradient_inside = [&](NodeId id) {
    return id >= first && id <= last && !borders.gradients[id.value];
  };

  std::size_t time = 0, life = 0;
  const auto run_forward = [&](const Instruction& step) {
    const Node& node = graph.node(step.node);
    for (const NodeId input : node.inputs)
      if (value_inside(input)) values[input.value].used_at(time, life);
    if (step.work != Work::statistics && value_inside(node.id))
      values[node.id.value].used_at(time, life);
    stashes[node.id.value].used_at(time, life);
    ++time;
  };
  const auto run_backward = [&](const Instruction& step) {
    const Node& node = graph.node(step.node);
    if (node.op->backward_reads_output && value_inside(node.id))
      values[node.id.value].used_at(time, life);
    if (gradient_inside(node.id)) gradients[node.id.value].used_at(time, life);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const NodeId input = node.inputs[i];
      if (node.op->backward_reads_input && value_inside(input))
        values[input.value].used_at(time, life);
      if (gives_input_gradients(step.work) && flow.mode(node.id, i) != GradientMode::none &&
          gradient_inside(input))
        gradients[input.value].used_at(time, life);
    }
    stashes[node.id.value].used_at(time, life);
    ++time;
  };
  for (const Part& part : program.forward)
    for (const Instruction& step : part) run_forward(step);
  if (recomputed) life = 1;
  for (const Part& part : program.backward)
    for (const Instruction& step : part)
      if (goes_back(step.work))
        run_backward(step);
      else
        run_forward(step);

  std::vector<Tensor> tensors;
  const auto take = [&](Tensor tensor, std::size_t& offset, std::size_t bytes) {
    if (!tensor.is_used() || bytes == 0) return;
    tensor.offset = &offset;
    tensor.bytes = align_up(bytes);
    tensors.push_back(tensor);
  };
  for (NodeId id = first; id <= last; ++id.value) {
    const Node& node = graph.node(id);
    const ValueForm& form = forms[id.value];
    const std::size_t bytes = form.bytes(capacity);
    take(values[id.value], map.values[id.value], bytes);
    take(gradients[id.value], map.gradients[id.value], bytes);
    if (node.op->stash_bytes && !program.backward.empty())
      take(stashes[id.value], map.stashes[id.value],
           static_cast<std::size_t>(node.op->stash_bytes(node, form.elements * capacity)));
  }
  map.bytes = place(tensors);
  return map;
}

}  // namespace regatta
