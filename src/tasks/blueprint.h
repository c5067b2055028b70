// Where everything lies: programs, arenas, buckets and the offsets inside every buffer. Derived
// from graph and plan alone, shared by all task lists of a run.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/dtype.h"
#include "base/optimizer.h"
#include "plan/rank_place.h"
#include "plan/recipe.h"
#include "tasks/memory.h"

namespace regatta {

// Parameters of one segment that are reduced, updated and packed by one task.
struct Bucket {
  SegmentId segment;
  std::vector<NodeId> nodes;
  std::size_t bytes = 0;                  // of the parameters, each aligned
  std::vector<std::size_t> packed_bytes;  // by group: of the form its kernels read
  std::vector<BucketTensor> tensors;
};

struct SegmentPlace {
  Program train, evaluate;
  // Indexed by group; sized for the group's largest chunk.
  std::vector<ArenaMap> train_arena, evaluate_arena;
  std::size_t state_bytes = 0, statistics_bytes = 0, partials_bytes = 0;
};

struct Blueprint {
  Graph graph;
  Plan plan;
  std::vector<Chunk> chunks;
  // Samples whose statistics are taken together: statistics_group() of the graph. If above 0, every
  // chunk has statistics of its own, and room for those of so many groups.
  std::int64_t group_samples = 0, groups_per_chunk = 1;
  GroupId owner;                              // keeps parameters and takes the steps
  std::vector<std::vector<ValueForm>> forms;  // by group, then node
  GradientFlow flow;
  std::vector<SegmentPlace> segments;
  std::vector<SegmentId> segment_of;  // by node
  std::vector<Bucket> buckets;
  std::vector<BucketId> bucket_of;            // by parameter
  std::vector<std::size_t> parameter_offset;  // by parameter, bytes inside its bucket
  // By group, then node: room for its packed parameters, and where in the bucket.
  std::vector<std::vector<std::size_t>> packed_room, packed_offset;
  std::vector<std::size_t> state_offset;       // by state, bytes inside its segment's state
  std::vector<std::size_t> statistics_offset;  // by node, bytes inside its segment's statistics
  std::vector<std::size_t> partials_offset;    // by node, bytes inside its segment's partials
  std::size_t sample_bytes = 0;                // one stored sample
  std::size_t targets_offset = 0;              // inside a samples buffer of the largest chunk
  OptimizerSettings optimizer;
  Dtype sample_dtype = Dtype::u8;
  Precision precision = Precision::fp32, wire_precision = Precision::fp32;
  bool several_ranks = false;  // others have the rest of the batch: chunks meet with theirs
  RankPlace ranks;             // where this process stands among them, if they are to be run

  // The batch comes in several chunks, here or elsewhere.
  bool cut() const { return chunks.size() > 1 || several_ranks; }
  // StarPU adds the gradients; with a single chunk there is nothing to add.
  bool by_redux() const { return plan.reduction == Reduction::redux && chunks.size() > 1; }
  // A running sum of the ranks before is added to this one's gradients.
  bool adds_running_sum() const {
    return ranks.several() && ranks.update == NodeUpdate::chain && ranks.rank > 0;
  }
  // The forward and backward of a chunk are one task, so its arena may serve the next chunk.
  bool whole_chunks() const;
  // In an evaluation, which never meets, likewise: loading and forward of a chunk are one task.
  bool whole_chunks_forward() const { return plan.gather_phases && segments.size() == 1; }
  // Whether the chunk is the first of those that add into its gradient slot.
  bool begins_slot(const Chunk& chunk) const;
  // The chunk whose arena this chunk uses.
  ChunkId arena_of(const Chunk& chunk, Pass pass) const;
  GroupId group_of_slot(std::uint32_t slot) const;
  const DeviceGroup& group(GroupId id) const { return *groups_of(plan)[id.value]; }
  // Bytes of a bucket's whole gradient in messages between ranks.
  std::size_t wire_bytes(const Bucket& bucket) const {
    return wire_precision == Precision::bf16 ? bucket.bytes / 2 : bucket.bytes;
  }
};

// What the recipe says of numbers in memory.
struct Numbers {
  Dtype samples = Dtype::u8;
  Precision precision = Precision::fp32;
  OptimizerSettings optimizer{};  // what it keeps by parameter, and whether gradients are measured
  Precision wire_precision = Precision::fp32;
};
Numbers numbers_of(const Recipe& recipe);

// With several ranks, the plan is that of this rank's node and `ranks` where it stands.
Blueprint make_blueprint(const Graph& graph, const Plan& plan, const Numbers& numbers,
                         bool training, bool several_ranks = false);
Blueprint make_blueprint(const Graph& graph, const Plan& plan, const Numbers& numbers,
                         bool training, const RankPlace& ranks);

// How many samples each chunk takes of a batch of `live` samples, and where it starts. A short last
// batch is shared out in the plan's proportions, in whole granules but for its last; a chunk may
// get none.
struct ChunkSpan {
  std::int64_t first = 0, count = 0;
};
std::vector<ChunkSpan> share_out(std::span<const std::int64_t> capacities, std::int64_t live,
                                 std::int64_t granule = 1);
std::vector<ChunkSpan> share_out(const std::vector<Chunk>& chunks, std::int64_t live,
                                 std::int64_t granule = 1);
// The same for the chunks of the whole batch, of all ranks.
std::vector<ChunkSpan> share_out_batch(const Blueprint& blueprint, std::int64_t live,
                                       std::int64_t granule = 1);

// True for a group of cores with several gradient slots where a GPU owns the parameters: the cores
// sum their slots first, so that one sum crosses to the GPU's memory and not a gradient for each
// core.
bool sums_own_slots(const Blueprint& blueprint, GroupId group);
// A group's gradient slots are these, one after the other.
struct SlotRange {
  int first = 0, count = 0;
};
SlotRange slots_of(const Blueprint& blueprint, GroupId group);

// How many tasks load a chunk side by side: more than one only for a GPU's chunk at gates, at most
// one for each worker that may load, each with enough bytes to be worth a task.
std::uint32_t load_pieces(const Blueprint& blueprint, const Chunk& chunk);
// The samples that the piece with this number loads of the chunk's live ones.
ChunkSpan piece_of(const Blueprint& blueprint, const Chunk& chunk, std::uint32_t piece,
                   ChunkSpan live);

// Bytes of a chunk's sums at a meeting operator, or of its groups of samples there.
std::size_t partials_bytes(const Blueprint& blueprint, NodeId node);
std::size_t statistics_bytes(const Blueprint& blueprint, NodeId node);  // of the merged ones
// Where an operator's running statistics lie in its segment's state, and how many bytes they are.
struct ByteRange {
  std::size_t from = 0, bytes = 0;
};
ByteRange state_range(const Blueprint& blueprint, NodeId node);
// Where those of the whole batch's chunk with this number lie in the segment's gathered sums: all
// chunks of one operator side by side, or with groups of samples all operators of one chunk.
std::size_t gathered_offset(const Blueprint& blueprint, NodeId node, std::size_t chunk);

// The operator at which the chunks of a segment meet after this part, forward or on the way back.
NodeId meeting_after(const Program& program, std::uint32_t part, bool back);

// Room for parameters in the form that kernels read: on CPUs forward and backward copies of a
// convolution's weights with channels padded to whole blocks, and its bias; of a bf16 dense layer,
// rounded weights; on GPUs weights in layout and precision of the group, unless plain.
std::size_t packed_bytes(const Graph& graph, const Node& node, const DeviceGroup& group,
                         Precision precision);

}  // namespace regatta
