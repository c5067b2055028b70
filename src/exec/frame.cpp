#include "exec/frame.h"

#include <algorithm>

#include "base/error.h"

namespace regatta {

Frame::Frame(const Blueprint& blueprint, std::vector<const std::uint8_t*> masks)
    : blueprint_(blueprint),
      masks_(std::move(masks)),
      borders_(blueprint.graph.nodes().size()),
      border_gradients_(blueprint.graph.nodes().size()),
      parameters_(blueprint.buckets.size()),
      averages_(blueprint.buckets.size()),
      squares_(blueprint.buckets.size()),
      packed_(blueprint.buckets.size()),
      running_sums_(blueprint.buckets.size()),
      group_sums_(groups_of(blueprint.plan).size(),
                  std::vector<std::byte*>(blueprint.buckets.size())),
      gradients_(blueprint.buckets.size() *
                 static_cast<std::size_t>(gradient_slots(blueprint.plan))),
      partials_(blueprint.chunks.size()) {
  for (auto& moments : moments_) moments.resize(blueprint.buckets.size());
}

void Frame::bind(const Buffer& buffer, std::byte* data) {
  const auto slot = [&]() -> std::byte** {
    switch (buffer.kind) {
      case BufferKind::samples:
        return &samples_;
      case BufferKind::border:
        return &borders_[buffer.second];
      case BufferKind::border_gradient:
        return &border_gradients_[buffer.second];
      case BufferKind::arena:
        return &arena_;
      case BufferKind::partials:
        return &partials_[buffer.second];
      case BufferKind::statistics:
        return &statistics_;
      case BufferKind::state:
        return &state_;
      case BufferKind::parameters:
        return &parameters_[buffer.first];
      case BufferKind::moment:
        return &moments_[buffer.second][buffer.first];
      case BufferKind::average:
        return &averages_[buffer.first];
      case BufferKind::squares:
        return &squares_[buffer.first];
      case BufferKind::clip:
        return &clip_;
      case BufferKind::gradient:
        return &gradients_[buffer.first *
                               static_cast<std::size_t>(gradient_slots(blueprint_.plan)) +
                           buffer.second];
      case BufferKind::packed:
        return &packed_[buffer.first];
      case BufferKind::gathered_sums:
        return &gathered_sums_;
      case BufferKind::running_sum:
        return &running_sums_[buffer.first];
      case BufferKind::group_sum:
        return &group_sums_[buffer.second][buffer.first];
      case BufferKind::delivered:
        return &delivered_;
    }
    throw Error("unknown buffer kind");
  }();
  *slot = data;
  bound_.push_back(slot);
}

void Frame::clear() {
  for (std::byte** slot : bound_) *slot = nullptr;
  bound_.clear();
}

Target* Frame::targets() const {
  return reinterpret_cast<Target*>(samples_ + blueprint_.targets_offset);
}

float* Frame::gradient(BucketId bucket, int slot) const {
  return floats(
      gradients_[bucket.value * static_cast<std::size_t>(gradient_slots(blueprint_.plan)) +
                 static_cast<std::size_t>(slot)]);
}

float* Frame::parameter(ParameterId id) const {
  std::byte* bucket = parameters_[blueprint_.bucket_of[id.value].value];
  return bucket ? floats(bucket + blueprint_.parameter_offset[id.value]) : nullptr;
}

std::byte* Frame::packed(NodeId node, GroupId group) const {
  const ParameterId first = blueprint_.graph.node(node).parameters.front();
  std::byte* bucket = packed_[blueprint_.bucket_of[first.value].value];
  return bucket ? bucket + blueprint_.packed_offset[group.value][node.value] : nullptr;
}

float* Frame::state(StateId id) const { return floats(state_ + blueprint_.state_offset[id.value]); }

float* Frame::statistics(NodeId node) const {
  return floats(statistics_ + blueprint_.statistics_offset[node.value]);
}

double* Frame::partials(NodeId node, ChunkId chunk) const {
  return reinterpret_cast<double*>(partials_[chunk.value] + blueprint_.partials_offset[node.value]);
}

double* Frame::gathered_sums(NodeId node, std::size_t chunk) const {
  return reinterpret_cast<double*>(gathered_sums_ + gathered_offset(blueprint_, node, chunk));
}

Operands Frame::operands(const Instruction& step, const Chunk& chunk, const ArenaMap& arena) const {
  const Graph& graph = blueprint_.graph;
  const Node& node = graph.node(step.node);
  // A task of weight gradients has no arena.
  const auto in_arena = [&](std::size_t offset) { return arena_ ? arena_ + offset : nullptr; };
  const auto value = [&](NodeId id) {
    const std::size_t offset = arena.values[id.value];
    return floats(offset == ArenaMap::absent ? borders_[id.value] : in_arena(offset));
  };
  const auto gradient_of = [&](NodeId id) {
    const std::size_t offset = arena.gradients[id.value];
    return floats(offset == ArenaMap::absent ? border_gradients_[id.value] : in_arena(offset));
  };
  Operands o;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    o.inputs[i] = value(node.inputs[i]);
    o.input_gradients[i] = gradient_of(node.inputs[i]);
    o.gradient_modes[i] = blueprint_.flow.mode(node.id, i);
  }
  o.output = value(node.id);
  o.output_gradient = gradient_of(node.id);
  for (std::size_t i = 0; i < node.parameters.size(); ++i) {
    const ParameterId id = node.parameters[i];
    o.parameters[i] = parameter(id);
    std::byte* slot =
        reinterpret_cast<std::byte*>(gradient(blueprint_.bucket_of[id.value], chunk.slot));
    if (slot) o.parameter_gradients[i] = floats(slot + blueprint_.parameter_offset[id.value]);
  }
  o.add_parameter_gradients = blueprint_.by_redux() || !blueprint_.begins_slot(chunk);
  if (!node.parameters.empty()) o.packed = packed(node.id, chunk.group);
  if (arena.stashes[node.id.value] != ArenaMap::absent)
    o.stash = in_arena(arena.stashes[node.id.value]);
  if (state_)
    for (std::size_t i = 0; i < node.states.size(); ++i) o.states[i] = state(node.states[i]);
  if (statistics_) o.statistics = statistics(node.id);
  if (partials_[chunk.id.value]) o.partials = partials(node.id, chunk.id);
  o.samples = samples_;
  if (samples_) o.targets = targets();
  return o;
}

}  // namespace regatta
