// Makes a task list task by task: begins tasks or joins them, numbers buffers, notes accesses.
#pragma once

#include <map>
#include <tuple>

#include "tasks/task_list.h"

namespace regatta {

class ListBuilder {
 public:
  ListBuilder(const Blueprint& blueprint, ListKind kind);

  TaskList take() { return std::move(list_); }
  const Blueprint& blueprint() const { return blueprint_; }
  ListKind kind() const { return list_.job; }
  Pass pass() const { return pass_; }

  // --- tasks

  // A task on a device of `group`; `join`: the one before it.
  Task& task_for(GroupId group, bool join);
  // Loading and delivering; a CPU's task may take them along.
  Task& host_task(GroupId group, bool join);
  // A task of messages between ranks.
  Task& travelling_task(Action action);

  // --- accesses

  // A second access to the same buffer widens the first. A buffer that this task wrote first keeps
  // mode write: its old content is not wanted.
  void touch(Task& task, std::uint32_t number, Mode mode) const;
  static void touch(Task& task, std::uint32_t number, Mode mode, ByteRange range);
  void touch_packed(Task& task, BucketId b, GroupId group, Mode mode);
  // Segments that are computed again keep nothing inside from forward to backward, so those of a
  // chunk take turns in one arena.
  void touch_arena(Task& task, SegmentId s, const Chunk& chunk, bool begins);
  // Every chunk's own sums; no range: all bytes.
  void read_partials(Task& task, SegmentId s, ByteRange range = {});

  // --- buffers by name

  std::uint32_t buffer(BufferKind kind, std::uint32_t first, std::uint32_t second,
                       std::size_t bytes, int copies = 1);
  std::uint32_t segment_buffer(BufferKind kind, SegmentId s, std::size_t bytes,
                               std::uint32_t second = 0);
  std::uint32_t samples(const Chunk& chunk);
  std::uint32_t border(const Chunk& chunk, NodeId node);
  std::uint32_t border_gradient(const Chunk& chunk, NodeId node);
  std::uint32_t parameters(BucketId b);
  std::uint32_t gradient(BucketId b, int slot);
  std::uint32_t gathered_sums(SegmentId s);
  std::uint32_t delivered(const Chunk& chunk);
  // The bytes of a segment's buffers that belong to one meeting operator.
  ByteRange statistics_of(NodeId node) const;
  ByteRange partials_of(NodeId node) const;

  // --- facts

  bool several() const { return blueprint_.ranks.several(); }
  bool on_cpu(GroupId group) const { return blueprint_.group(group).kind == DeviceKind::cpu; }
  bool load_with_forward(const Chunk& chunk) const;
  const Program& program_of(SegmentId s) const;
  Borders borders(SegmentId s) const;
  bool recomputed(SegmentId s) const { return blueprint_.plan.segments[s.value].recomputed; }
  bool outside(SegmentId s, NodeId node) const { return blueprint_.segment_of[node.value] != s; }
  double flops(const Instruction& step, const Chunk& chunk) const;

 private:
  // How far actions run together in one task when the whole step is one segment and one chunk: on a
  // CPU all of them; on a GPU all but those of the host, so that a step is one graph.
  enum class Together { parts, device, all };

  std::size_t value_bytes(const Chunk& chunk, NodeId node) const;
  std::size_t arena_bytes(SegmentId s, GroupId group) const;

  const Blueprint& blueprint_;
  const Pass pass_;
  Together together_ = Together::parts;
  TaskList list_;
  std::map<std::tuple<BufferKind, std::uint32_t, std::uint32_t>, std::uint32_t> numbers_;
};

}  // namespace regatta
