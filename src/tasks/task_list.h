// The task list of one step: data that the simulator and the executor both read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tasks/blueprint.h"

namespace regatta {

enum class Phase {
  load,              // samples of a chunk come in
  forward,           // a part of a segment on a chunk
  combine,           // chunks meet: batch statistics are merged, running ones updated
  deliver,           // a chunk's losses (and logits) reach the host
  backward,          // a part of a segment on a chunk
  weight_gradient,   // of a split backward: the weight gradients of a part on a chunk
  combine_gradient,  // chunks meet on the way back
  track,             // running statistics take the mean over all groups of samples
  reduce,            // a bucket's gradient slots are summed, all or those of one group
  measure,           // the squares of a bucket's gradient are summed, for clipping
  clip,              // all buckets' sums meet: what gradients are multiplied by
  update,            // a bucket's parameters take a step
  pack,              // a bucket's parameters are laid out as a group's kernels read them
  // Between ranks, by the communicator's thread (exec/communicator.h):
  exchange_sums,           // every rank gets the sums of all chunks at a meeting point
  exchange_gradient_sums,  // every rank gets their gradient sums at a meeting point on the way back
  exchange_group_sums,     // every rank gets the sums of all groups of samples, for statistics
  running_sum,             // the sum of a bucket's gradient over the ranks before this one comes in
  exchange,                // a bucket's gradient is summed over all ranks
  exchange_results,        // every rank gets the losses of all samples, the first one also logits
};
std::string_view phase_name(Phase phase);
// Whether it is done chunk by chunk.
constexpr bool of_chunk(Phase phase) {
  return phase == Phase::load || phase == Phase::forward || phase == Phase::deliver ||
         phase == Phase::backward || phase == Phase::weight_gradient;
}
// Whether it runs a part of a segment's program on a chunk (part_of).
constexpr bool runs_part(Phase phase) {
  return phase == Phase::forward || phase == Phase::backward || phase == Phase::weight_gradient;
}

// Whether it is done by messages between ranks, not by a worker.
constexpr bool travels(Phase phase) { return phase >= Phase::exchange_sums; }

enum class BufferKind {
  samples,          // (chunk) stored samples, then targets
  border,           // (chunk, node) a value that another segment or the host reads
  border_gradient,  // (chunk, node)
  arena,            // (segment, chunk) the inside of a segment
  partials,         // (segment, chunk) a chunk's own sums at meeting points, or of its groups
  statistics,       // (segment) merged sums; (segment, chunk) if they are those of groups
  state,            // (segment) running statistics
  parameters,       // (bucket)
  moment,           // (bucket, 0 or 1) the optimizer's running mean of gradients, of squares
  average,          // (bucket) the averaged parameters
  gradient,         // (bucket, slot)
  group_sum,  // (bucket, group) the sum of a group's slots, where its own memory sums them first
  squares,    // (bucket) the sum of the gradient's squares, a double
  clip,       // () what the gradients are multiplied by, a float
  packed,     // (bucket, group)
  gathered_sums,  // (segment) partials of all ranks, meeting by meeting, chunk by chunk
  running_sum,    // (bucket) the sum of the gradient over the ranks before this one
  delivered,      // (chunk) its results are with the host
};

struct Buffer {
  BufferKind kind;
  std::uint32_t first = 0, second = 0;  // which one, as said beside the kind
  std::size_t bytes = 0;
  int copies = 1;  // step s uses copy s % copies; more than one lets steps overlap
};

enum class Mode {
  read,
  write,
  read_write,
  reduce,      // StarPU adds what several tasks write, in any order
  write_part,  // a part of the buffer that no other task writes; tasks do so side by side
};

struct Access {
  std::uint32_t buffer = 0;  // index into TaskList::buffers
  Mode mode = Mode::read;
  // The bytes that it may touch, from `from` on; 0 bytes: all of the buffer.
  std::size_t from = 0, bytes = 0;
};
constexpr bool writes(Mode mode) { return mode != Mode::read; }

// What a task does, in order. Fields that do not concern the phase are zero.
struct Action {
  Phase phase = Phase::forward;
  SegmentId segment{};
  std::uint32_t part = 0;  // of the segment; of loading: which piece of the chunk, see load_pieces
  ChunkId chunk{};
  BucketId bucket{};
  GroupId group{};  // of packing; of reducing: whose slots, the owner's task sums up all
};

struct Task {
  std::vector<Action> actions;
  std::vector<Access> accesses;  // each buffer once
  // Where it runs: a device of this group, or for loading and delivering any CPU worker.
  GroupId group;
  bool on_host = false;
  double flops = 0;  // for a full batch
  int priority = 0;
};

// Whether a task computes nothing but weight gradients: no meeting waits for it, and a worker that
// runs it has no more of the chunk's data in its caches than before.
inline bool only_weight_gradients(const Task& task) {
  return task.actions.front().phase == Phase::weight_gradient;
}
inline bool travels(const Task& task) { return travels(task.actions.front().phase); }

enum class ListKind {
  prepare,   // packs parameters that were set from outside
  train,     // one step
  evaluate,  // one forward pass that delivers losses and logits
  // A step of several micro-batches: the first begins the gradients, the middle ones add to them,
  // the last adds to them and takes the step.
  first,
  middle,
  last,
};
constexpr bool trains(ListKind job) {
  return job != ListKind::prepare && job != ListKind::evaluate;
}
constexpr bool takes_step(ListKind job) { return job == ListKind::train || job == ListKind::last; }
// Gradients are added to those of the micro-batches before.
constexpr bool adds(ListKind job) { return job == ListKind::middle || job == ListKind::last; }

struct TaskList {
  ListKind job = ListKind::train;
  std::vector<Buffer> buffers;
  std::vector<Task> tasks;  // in an order that sequential execution may follow
};

inline std::size_t bytes_of(const TaskList& list, const Access& access) {
  return access.bytes > 0 ? access.bytes : list.buffers[access.buffer].bytes;
}

TaskList lower(const Blueprint& blueprint, ListKind job);

// The instructions that an action of such a phase carries out.
const Part& part_of(const Program& program, const Action& action);

// Every broken invariant (a buffer read before anyone wrote it, two accesses to one buffer in a
// task, sizes of zero); empty for a sound list.
std::vector<std::string> faults(const TaskList& list);

}  // namespace regatta
