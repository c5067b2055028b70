#include "tasks/blueprint.h"

#include <algorithm>
#include <optional>

#include "base/dtype.h"
#include "graph/op.h"

namespace regatta {
namespace {

std::int64_t largest_chunk(const std::vector<Chunk>& chunks, GroupId group) {
  std::int64_t most = 0;
  for (const Chunk& chunk : chunks)
    if (chunk.group == group) most = std::max(most, chunk.capacity);
  return most;
}

// Gathers a segment's parameters into buckets of about plan.bucket_bytes. Weights whose gradients
// are computed apart from backward have buckets of their own, each of one part of backward: tasks
// that add into one bucket wait for each other.
void fill_buckets(Blueprint& blueprint, SegmentId segment) {
  const Graph& graph = blueprint.graph;
  const Segment& range = blueprint.plan.segments[segment.value];
  const std::size_t groups = blueprint.packed_room.size();
  const bool split = blueprint.plan.backward == Backward::split;
  std::optional<BucketId> open_whole, open_apart;  // that have room left
  for (NodeId id = range.first; id <= range.last; ++id.value) {
    const Node& node = graph.node(id);
    if (blueprint.cut() && meets(node)) open_apart.reset();  // here a part ends
    if (node.parameters.empty()) continue;
    std::optional<BucketId>& open = split && node.op->splits_backward ? open_apart : open_whole;
    if (!open) {
      open = BucketId{static_cast<std::uint32_t>(blueprint.buckets.size())};
      blueprint.buckets.push_back({segment, {}, 0, std::vector<std::size_t>(groups), {}});
    }
    Bucket& bucket = blueprint.buckets[open->value];
    bucket.nodes.push_back(id);
    for (const ParameterId parameter : node.parameters) {
      blueprint.bucket_of[parameter.value] = *open;
      blueprint.parameter_offset[parameter.value] = bucket.bytes;
      const Shape& shape = graph.parameter(parameter).shape;
      const auto count = static_cast<std::size_t>(shape.elements());
      // Biases and what norms scale and shift by are vectors.
      bucket.tensors.push_back({bucket.bytes / sizeof(float), count, shape.rank() > 1});
      bucket.bytes += align_up(count * sizeof(float));
    }
    for (std::size_t g = 0; g < groups; ++g) {
      blueprint.packed_offset[g][id.value] = bucket.packed_bytes[g];
      bucket.packed_bytes[g] += align_up(blueprint.packed_room[g][id.value]);
    }
    if (bucket.bytes >= static_cast<std::size_t>(blueprint.plan.bucket_bytes)) open.reset();
  }
}

void place_states(Blueprint& blueprint, SegmentId segment) {
  const Segment& range = blueprint.plan.segments[segment.value];
  SegmentPlace& place = blueprint.segments[segment.value];
  for (NodeId id = range.first; id <= range.last; ++id.value) {
    const Node& node = blueprint.graph.node(id);
    blueprint.segment_of[id.value] = segment;
    for (const StateId state : node.states) {
      blueprint.state_offset[state.value] = place.state_bytes;
      place.state_bytes += align_up(
          static_cast<std::size_t>(blueprint.graph.state(state).shape.elements()) * sizeof(float));
    }
    if (!node.op->meets) continue;
    blueprint.statistics_offset[id.value] = place.statistics_bytes;
    place.statistics_bytes += statistics_bytes(blueprint, id);
    blueprint.partials_offset[id.value] = place.partials_bytes;
    place.partials_bytes += partials_bytes(blueprint, id);
  }
}

}  // namespace

std::size_t partials_bytes(const Blueprint& blueprint, NodeId node) {
  return static_cast<std::size_t>(blueprint.groups_per_chunk) * partials_rows *
         padded_channels(blueprint.graph.node(node).shape.channels()) * sizeof(double);
}

std::size_t statistics_bytes(const Blueprint& blueprint, NodeId node) {
  return static_cast<std::size_t>(blueprint.groups_per_chunk) * statistics_rows *
         padded_channels(blueprint.graph.node(node).shape.channels()) * sizeof(float);
}

ByteRange state_range(const Blueprint& blueprint, NodeId node) {
  const std::vector<StateId>& states = blueprint.graph.node(node).states;
  if (states.empty()) return {};
  // A node's states lie side by side, in order: see place_states().
  const std::size_t first = blueprint.state_offset[states.front().value];
  const std::size_t last = blueprint.state_offset[states.back().value];
  const auto elements =
      static_cast<std::size_t>(blueprint.graph.state(states.back()).shape.elements());
  return {first, last + align_up(elements * sizeof(float)) - first};
}

SlotRange slots_of(const Blueprint& blueprint, GroupId group) {
  SlotRange range;
  for (const Chunk& chunk : blueprint.chunks) {
    if (chunk.group != group) continue;
    if (range.count == 0) range.first = chunk.slot;
    range.count = std::max(range.count, chunk.slot - range.first + 1);
  }
  return range;
}

bool sums_own_slots(const Blueprint& blueprint, GroupId group) {
  const auto on_gpu = [&](GroupId id) { return blueprint.group(id).kind == DeviceKind::cuda; };
  return blueprint.plan.reduction == Reduction::slots && blueprint.plan.stages.empty() &&
         on_gpu(blueprint.owner) && !on_gpu(group) && slots_of(blueprint, group).count > 1;
}

std::uint32_t load_pieces(const Blueprint& blueprint, const Chunk& chunk) {
  const Plan& plan = blueprint.plan;
  // StarPU would let only one task at a time write into a buffer.
  if (blueprint.group(chunk.group).kind == DeviceKind::cpu || !waits_at_gates(plan)) return 1;
  // Copying less takes no longer than starting a task for it.
  constexpr std::size_t least_bytes = std::size_t{256} << 10;
  const std::size_t bytes = blueprint.sample_bytes * static_cast<std::size_t>(chunk.capacity);
  const std::int64_t worthwhile = static_cast<std::int64_t>(bytes / least_bytes);
  const std::int64_t most =
      std::min<std::int64_t>(std::max(loading_workers(plan), 1), chunk.capacity);
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(worthwhile, 1, most));
}

ChunkSpan piece_of(const Blueprint& blueprint, const Chunk& chunk, std::uint32_t piece,
                   ChunkSpan live) {
  const std::int64_t pieces = load_pieces(blueprint, chunk);
  const std::int64_t begin = live.count * piece / pieces;
  const std::int64_t end = live.count * (std::int64_t{piece} + 1) / pieces;
  return {live.first + begin, end - begin};
}

std::size_t gathered_offset(const Blueprint& blueprint, NodeId node, std::size_t chunk) {
  const std::size_t offset = blueprint.partials_offset[node.value];
  if (blueprint.group_samples > 0)
    return chunk * blueprint.segments[blueprint.segment_of[node.value].value].partials_bytes +
           offset;
  return offset * blueprint.ranks.chunks.size() + chunk * partials_bytes(blueprint, node);
}

NodeId meeting_after(const Program& program, std::uint32_t part, bool back) {
  return program.meetings[back ? program.meetings.size() - 1 - part : std::size_t{part}];
}

std::size_t packed_bytes(const Graph& graph, const Node& node, const DeviceGroup& group,
                         Precision precision) {
  const bool conv = node.op->name == "conv";
  if (!conv && node.op->name != "dense") return 0;
  const Shape& weight = graph.parameter(node.parameters.front()).shape;
  const auto pixels = static_cast<std::size_t>(conv ? weight[2] * weight[3] : 1);
  // Each group's channels are padded on their own, but for depthwise convolutions, whose groups
  // are the channels.
  const std::int64_t groups = node.attributes.integer("groups", 1);
  const bool depthwise = groups > 1 && groups == weight[0] && weight[1] == 1;
  const std::size_t padded =
      pixels * (depthwise ? padded_channels(weight[0])
                          : static_cast<std::size_t>(groups) * padded_channels(weight[0] / groups) *
                                padded_channels(weight[1]));
  if (group.kind == DeviceKind::cpu) {
    if (conv)
      return 2 * align_up(padded * sizeof(float)) + padded_channels(weight[0]) * sizeof(float);
    // Only a dense layer that gives bf16 values reads rounded weights.
    const bool rounded = value_dtypes(graph, precision)[node.id.value] == Dtype::bf16;
    return rounded ? static_cast<std::size_t>(weight.elements()) * dtype_bytes(Dtype::bf16) : 0;
  }
  if (precision == Precision::bf16) return align_up(padded * dtype_bytes(Dtype::bf16));
  return conv && group.layout == Layout::nhwc ? align_up(padded * sizeof(float)) : 0;
}

bool Blueprint::whole_chunks() const {
  return plan.gather_phases && segments.size() == 1 && segments[0].train.meetings.empty();
}

bool Blueprint::begins_slot(const Chunk& chunk) const {
  return std::ranges::find(chunks, chunk.slot, &Chunk::slot)->id == chunk.id;
}

ChunkId Blueprint::arena_of(const Chunk& chunk, Pass pass) const {
  return pass == Pass::evaluate || whole_chunks() ? chunk.lane_first : chunk.id;
}

GroupId Blueprint::group_of_slot(std::uint32_t slot) const {
  if (plan.reduction != Reduction::slots) return owner;
  return std::ranges::find(chunks, static_cast<int>(slot), &Chunk::slot)->group;
}

namespace {

Blueprint make_blueprint_of(const Graph& graph, const Plan& plan, const Numbers& numbers,
                            bool training, bool several_ranks, const RankPlace& ranks) {
  const auto groups = groups_of(plan);
  const std::size_t nodes = graph.nodes().size();
  Blueprint blueprint{.graph = graph,
                      .plan = plan,
                      .chunks = chunks_of(plan),
                      .owner = owner_of(plan),
                      .forms = {},
                      .flow = GradientFlow(graph),
                      .segments = std::vector<SegmentPlace>(plan.segments.size()),
                      .segment_of = std::vector<SegmentId>(nodes),
                      .buckets = {},
                      .bucket_of = std::vector<BucketId>(graph.parameters().size()),
                      .parameter_offset = std::vector<std::size_t>(graph.parameters().size()),
                      .packed_room = std::vector(groups.size(), std::vector<std::size_t>(nodes)),
                      .packed_offset = std::vector(groups.size(), std::vector<std::size_t>(nodes)),
                      .state_offset = std::vector<std::size_t>(graph.states().size()),
                      .statistics_offset = std::vector<std::size_t>(nodes),
                      .partials_offset = std::vector<std::size_t>(nodes),
                      .optimizer = numbers.optimizer,
                      .sample_dtype = numbers.samples,
                      .precision = numbers.precision,
                      .wire_precision = numbers.wire_precision,
                      .several_ranks = several_ranks,
                      .ranks = ranks};
  std::int64_t largest = 0;
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    blueprint.forms.push_back(value_forms(graph, groups[g]->layout, numbers.precision));
    largest = std::max(largest, largest_chunk(blueprint.chunks, GroupId{g}));
    for (const Node& node : graph.nodes())
      blueprint.packed_room[g][node.id.value] =
          packed_bytes(graph, node, *groups[g], numbers.precision);
  }
  blueprint.group_samples = statistics_group(graph);
  // All ranks have room for as many groups, because they send them to each other.
  for (const std::int64_t capacity : ranks.chunks) largest = std::max(largest, capacity);
  if (const std::int64_t group = blueprint.group_samples; group > 0)
    blueprint.groups_per_chunk = (largest + group - 1) / group;
  blueprint.sample_bytes = static_cast<std::size_t>(graph.node(graph.input()).shape.elements()) *
                           dtype_bytes(numbers.samples);
  blueprint.targets_offset = align_up(blueprint.sample_bytes * static_cast<std::size_t>(largest));

  for (std::uint32_t s = 0; s < plan.segments.size(); ++s) {
    const auto [first, last, recomputed] = plan.segments[s];
    SegmentPlace& place = blueprint.segments[s];
    place.evaluate = program_of(graph, first, last, Pass::evaluate, blueprint.cut());
    if (training)
      place.train = program_of(graph, first, last, Pass::train, blueprint.cut(),
                               plan.backward == Backward::split, recomputed);
    for (std::uint32_t g = 0; g < groups.size(); ++g) {
      const std::int64_t capacity = largest_chunk(blueprint.chunks, GroupId{g});
      const auto arena = [&](Pass pass, const Program& program) {
        return plan_arena(graph, first, last, pass, program, blueprint.forms[g], capacity,
                          pass == Pass::train && recomputed);
      };
      place.evaluate_arena.push_back(arena(Pass::evaluate, place.evaluate));
      if (training) place.train_arena.push_back(arena(Pass::train, place.train));
    }
    fill_buckets(blueprint, SegmentId{s});
    place_states(blueprint, SegmentId{s});
  }
  return blueprint;
}

}  // namespace

Numbers numbers_of(const Recipe& recipe) {
  return {recipe.loaded_dtype(), recipe.precision, recipe.optimizer, recipe.wire_precision};
}

Blueprint make_blueprint(const Graph& graph, const Plan& plan, const Numbers& numbers,
                         bool training, bool several_ranks) {
  return make_blueprint_of(graph, plan, numbers, training, several_ranks, {});
}

Blueprint make_blueprint(const Graph& graph, const Plan& plan, const Numbers& numbers,
                         bool training, const RankPlace& ranks) {
  return make_blueprint_of(graph, plan, numbers, training, ranks.several(), ranks);
}
std::vector<ChunkSpan> share_out(std::span<const std::int64_t> capacities, std::int64_t live,
                                 std::int64_t granule) {
  const auto granules = [&](std::int64_t samples) { return (samples + granule - 1) / granule; };
  std::int64_t all = 0;  // granules of a full batch
  for (const std::int64_t capacity : capacities) all += granules(capacity);
  // Where granules cannot be shared out evenly, earlier chunks get more: the last chunk's last
  // granule may have no room for a whole one.
  const auto live_before = [&](std::int64_t before) {
    if (granule == 1) return before * live / all;
    return std::min(live, (before * granules(live) + all - 1) / all * granule);
  };
  std::vector<ChunkSpan> spans;
  std::int64_t before = 0;
  for (const std::int64_t capacity : capacities) {
    const std::int64_t first = live_before(before);
    before += granules(capacity);
    spans.push_back({first, live_before(before) - first});
  }
  return spans;
}

std::vector<ChunkSpan> share_out(const std::vector<Chunk>& chunks, std::int64_t live,
                                 std::int64_t granule) {
  std::vector<std::int64_t> capacities;
  for (const Chunk& chunk : chunks) capacities.push_back(chunk.capacity);
  return share_out(capacities, live, granule);
}

std::vector<ChunkSpan> share_out_batch(const Blueprint& blueprint, std::int64_t live,
                                       std::int64_t granule) {
  return blueprint.ranks.several() ? share_out(blueprint.ranks.chunks, live, granule)
                                   : share_out(blueprint.chunks, live, granule);
}

}  // namespace regatta
