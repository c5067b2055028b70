#include "tasks/list_builder.h"

#include <algorithm>

#include "base/target.h"
#include "graph/op.h"

namespace regatta {

ListBuilder::ListBuilder(const Blueprint& blueprint, ListKind kind)
    : blueprint_(blueprint), pass_(kind == ListKind::evaluate ? Pass::evaluate : Pass::train) {
  list_.job = kind;
  const bool whole = blueprint.plan.gather_phases && blueprint.segments.size() == 1 &&
                     !blueprint.cut() && kind != ListKind::prepare;
  if (whole) together_ = on_cpu(GroupId{0}) ? Together::all : Together::device;
}

Task& ListBuilder::task_for(GroupId group, bool join) {
  const bool first = list_.tasks.empty() || list_.tasks.back().on_host;
  const bool joins = together_ == Together::all ? !list_.tasks.empty()
                                                : join || (together_ == Together::device && !first);
  if (!joins) {
    list_.tasks.emplace_back();
    list_.tasks.back().group = group;
  }
  return list_.tasks.back();
}

Task& ListBuilder::host_task(GroupId group, bool join) {
  const bool joins = (join || together_ == Together::all) && !list_.tasks.empty();
  if (!joins) {
    list_.tasks.emplace_back();
    list_.tasks.back().group = group;
    list_.tasks.back().on_host = true;
  }
  return list_.tasks.back();
}

Task& ListBuilder::travelling_task(Action action) {
  Task& task = list_.tasks.emplace_back();
  task.group = blueprint_.owner;
  task.on_host = true;
  task.priority = 1;
  task.actions.push_back(action);
  return task;
}

std::uint32_t ListBuilder::buffer(BufferKind kind, std::uint32_t first, std::uint32_t second,
                                  std::size_t bytes, int copies) {
  const auto [found, fresh] = numbers_.try_emplace(
      std::tuple(kind, first, second), static_cast<std::uint32_t>(list_.buffers.size()));
  if (fresh) list_.buffers.push_back({kind, first, second, bytes, copies});
  return found->second;
}

void ListBuilder::touch(Task& task, std::uint32_t number, Mode mode) const {
  touch(task, number, mode, {0, list_.buffers[number].bytes});
}

void ListBuilder::touch(Task& task, std::uint32_t number, Mode mode, ByteRange range) {
  for (Access& access : task.accesses) {
    if (access.buffer != number) continue;
    if (access.mode == Mode::read && mode != Mode::read) access.mode = Mode::read_write;
    const std::size_t end = std::max(access.from + access.bytes, range.from + range.bytes);
    access.from = std::min(access.from, range.from);
    access.bytes = end - access.from;
    return;
  }
  task.accesses.push_back({number, mode, range.from, range.bytes});
}

std::uint32_t ListBuilder::samples(const Chunk& chunk) {
  const std::size_t bytes =
      blueprint_.targets_offset + static_cast<std::size_t>(chunk.capacity) * sizeof(Target);
  return buffer(BufferKind::samples, chunk.id.value, 0, bytes, blueprint_.plan.steps_in_flight);
}

std::uint32_t ListBuilder::border(const Chunk& chunk, NodeId node) {
  // Losses and logits, which the host reads after the step, have a copy for each step in flight.
  const bool delivered = node == blueprint_.graph.loss() || node == blueprint_.graph.logits();
  return buffer(BufferKind::border, chunk.id.value, node.value, value_bytes(chunk, node),
                delivered ? blueprint_.plan.steps_in_flight : 1);
}

std::uint32_t ListBuilder::border_gradient(const Chunk& chunk, NodeId node) {
  return buffer(BufferKind::border_gradient, chunk.id.value, node.value, value_bytes(chunk, node));
}

std::size_t ListBuilder::value_bytes(const Chunk& chunk, NodeId node) const {
  return blueprint_.forms[chunk.group.value][node.value].bytes(chunk.capacity);
}

std::uint32_t ListBuilder::parameters(BucketId b) {
  return buffer(BufferKind::parameters, b.value, 0, blueprint_.buckets[b.value].bytes);
}

std::uint32_t ListBuilder::gradient(BucketId b, int slot) {
  return buffer(BufferKind::gradient, b.value, static_cast<std::uint32_t>(slot),
                blueprint_.buckets[b.value].bytes);
}

std::uint32_t ListBuilder::gathered_sums(SegmentId s) {
  return segment_buffer(
      BufferKind::gathered_sums, s,
      blueprint_.segments[s.value].partials_bytes * blueprint_.ranks.chunks.size());
}

std::uint32_t ListBuilder::delivered(const Chunk& chunk) {
  return buffer(BufferKind::delivered, chunk.id.value, 0, sizeof(std::int64_t),
                blueprint_.plan.steps_in_flight);
}

std::uint32_t ListBuilder::segment_buffer(BufferKind kind, SegmentId s, std::size_t bytes,
                                          std::uint32_t second) {
  return buffer(kind, s.value, second, bytes);
}

void ListBuilder::touch_packed(Task& task, BucketId b, GroupId group, Mode mode) {
  const std::size_t bytes = blueprint_.buckets[b.value].packed_bytes[group.value];
  if (bytes > 0) touch(task, buffer(BufferKind::packed, b.value, group.value, bytes), mode);
}

void ListBuilder::touch_arena(Task& task, SegmentId s, const Chunk& chunk, bool begins) {
  std::size_t bytes = arena_bytes(s, chunk.group);
  if (recomputed(s))
    for (auto other = static_cast<std::uint32_t>(blueprint_.segments.size()); other-- > 0;) {
      if (!recomputed(SegmentId{other})) continue;
      bytes = std::max(bytes, arena_bytes(SegmentId{other}, chunk.group));
      s = SegmentId{other};  // ends as the first recomputed segment, whose arena all of them use
    }
  if (bytes == 0) return;
  const ChunkId holder = blueprint_.arena_of(chunk, pass_);
  touch(task, segment_buffer(BufferKind::arena, s, bytes, holder.value),
        begins ? Mode::write : Mode::read_write);
}

std::size_t ListBuilder::arena_bytes(SegmentId s, GroupId group) const {
  const SegmentPlace& place = blueprint_.segments[s.value];
  const std::size_t bytes = place.evaluate_arena[group.value].bytes;
  return place.train_arena.empty() ? bytes : std::max(bytes, place.train_arena[group.value].bytes);
}

ByteRange ListBuilder::statistics_of(NodeId node) const {
  return {blueprint_.statistics_offset[node.value], statistics_bytes(blueprint_, node)};
}

ByteRange ListBuilder::partials_of(NodeId node) const {
  return {blueprint_.partials_offset[node.value], partials_bytes(blueprint_, node)};
}

bool ListBuilder::load_with_forward(const Chunk& chunk) const {
  const bool asked = blueprint_.plan.gather_loads ||
                     (pass_ == Pass::evaluate && blueprint_.whole_chunks_forward());
  return asked && together_ == Together::parts && on_cpu(chunk.group);
}

const Program& ListBuilder::program_of(SegmentId s) const {
  const SegmentPlace& place = blueprint_.segments[s.value];
  return pass_ == Pass::evaluate ? place.evaluate : place.train;
}

Borders ListBuilder::borders(SegmentId s) const {
  const Segment& range = blueprint_.plan.segments[s.value];
  return borders_of(blueprint_.graph, range.first, range.last, pass_, program_of(s));
}

double ListBuilder::flops(const Instruction& step, const Chunk& chunk) const {
  const Node& node = blueprint_.graph.node(step.node);
  const Cost cost = node.op->cost(node, input_shapes(blueprint_.graph, node));
  return (goes_back(step.work) ? cost.backward_flops * share_of_backward(blueprint_.flow, step)
                               : cost.forward_flops) *
         static_cast<double>(chunk.capacity);
}

void ListBuilder::read_partials(Task& task, SegmentId s, ByteRange range) {
  const std::size_t bytes = blueprint_.segments[s.value].partials_bytes;
  if (range.bytes == 0) range = {0, bytes};
  for (const Chunk& chunk : blueprint_.chunks)
    touch(task, segment_buffer(BufferKind::partials, s, bytes, chunk.id.value), Mode::read, range);
}

}  // namespace regatta
