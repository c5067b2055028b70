#include "tasks/cost_names.h"

#include <algorithm>

#include "base/files.h"
#include "graph/op.h"

namespace regatta {
namespace {

constexpr std::size_t works = static_cast<std::size_t>(Work::weight_gradient) + 1;

}  // namespace

CostNames::CostNames(const Blueprint& blueprint, const std::string& data, Pass pass)
    : blueprint_(blueprint),
      pass_(pass),
      load_{.signature = load_signature(data, blueprint.graph.node(blueprint.graph.input()).shape,
                                        blueprint.sample_dtype),
            .bytes = 2 * static_cast<double>(blueprint.sample_bytes)},
      shared_(blueprint.graph.nodes().size()),
      instructions_(blueprint.forms.size() * blueprint.graph.nodes().size() * works) {
  for (const Node& node : blueprint.graph.nodes())
    for (const NodeId input : node.inputs)
      if (blueprint.segment_of[node.id.value] != blueprint.segment_of[input.value])
        shared_[input.value] = true;
  name_in_segments(load_, false);
}

bool CostNames::shares(const Node& node) const {
  return shared_[node.id.value] ||
         std::ranges::any_of(node.inputs, [&](NodeId input) { return shared_[input.value]; });
}

KernelSetting CostNames::setting(GroupId group) const {
  const DeviceGroup& where = blueprint_.group(group);
  return {.device = where.kind == DeviceKind::cpu ? "cpu" : "cuda",
          .layout = where.layout,
          .precision = blueprint_.precision,
          .team = where.team};
}

const CostName* CostNames::instruction(const Instruction& step, GroupId group) const {
  const Graph& graph = blueprint_.graph;
  const std::size_t index = (group.value * graph.nodes().size() + step.node.value) * works +
                            static_cast<std::size_t>(step.work);
  std::optional<CostName>& name = instructions_[index];
  if (name) return &*name;
  const Node& node = graph.node(step.node);
  const Cost cost = node.op->cost(node, input_shapes(graph, node));
  const auto& forms = blueprint_.forms[group.value];
  std::size_t bytes = forms[node.id.value].bytes(1);
  for (const NodeId input : node.inputs) bytes += forms[input.value].bytes(1);
  const bool back = goes_back(step.work);
  const double share = share_of_backward(blueprint_.flow, step);
  std::vector<Layout> layouts;
  for (const ValueForm& form : forms) layouts.push_back(form.layout);
  name = CostName{
      .signature = signature_of(graph, blueprint_.flow, step, pass_, setting(group), layouts),
      .flops = back ? share * cost.backward_flops : cost.forward_flops,
      .bytes = share * static_cast<double>(bytes) * (back ? 2 : 1)};
  if (step.work == Work::input_gradient || step.work == Work::weight_gradient) {
    name->whole = instruction({step.node, Work::backward}, group);
    name->share = share;
  }
  name_in_segments(*name, shares(node));
  return &*name;
}

void CostNames::name_in_segments(CostName& name, bool shared) const {
  if (blueprint_.segments.size() < 2) return;
  name.in_one_segment = name.signature;
  name.signature = segment_signature(name.in_one_segment, shared);
}

const CostName* CostNames::kept(CostName name) const {
  std::string signature = name.signature;
  return &bookkeeping_.try_emplace(std::move(signature), std::move(name)).first->second;
}

CostPiece CostNames::bookkeeping(const Action& action, std::int64_t samples) const {
  const Graph& graph = blueprint_.graph;
  const KernelSetting owner = setting(blueprint_.owner);
  const auto bucket_bytes = [&] {
    return static_cast<double>(blueprint_.buckets[action.bucket.value].bytes);
  };
  // After a meeting, a worker reads what all workers of the group have written.
  const auto met = [&](std::string signature, double bytes) {
    return kept({.signature = std::move(signature),
                 .bytes = bytes,
                 .sharing_workers = blueprint_.group(blueprint_.owner).workers});
  };
  switch (action.phase) {
    case Phase::load: {
      const Chunk& chunk = blueprint_.chunks[action.chunk.value];
      return {&load_,
              static_cast<double>(piece_of(blueprint_, chunk, action.part, {0, samples}).count)};
    }
    case Phase::deliver:
      return {kept({.signature = deliver_signature(pass_, graph.classes()), .bytes = 16}),
              static_cast<double>(samples)};
    case Phase::combine:
    case Phase::combine_gradient: {
      const Program& program = blueprint_.segments[action.segment.value].train;
      const bool back = action.phase == Phase::combine_gradient;
      const std::int64_t channels =
          graph.node(meeting_after(program, action.part, back)).shape.channels();
      return {met(bookkeeping_signature(owner, back ? "combine_gradient" : "combine"), 16),
              static_cast<double>(channels) * static_cast<double>(blueprint_.chunks.size())};
    }
    case Phase::track: {
      double channels = 0;
      for (const NodeId id : blueprint_.segments[action.segment.value].train.grouped)
        channels += static_cast<double>(graph.node(id).shape.channels());
      return {met(bookkeeping_signature(owner, "track"), 16),
              channels * static_cast<double>(blueprint_.groups_per_chunk) *
                  static_cast<double>(blueprint_.chunks.size())};
    }
    case Phase::reduce: {
      // By the group that does it: a group's own slots, or the owner's and one sum of each other.
      if (action.group != blueprint_.owner)
        return {kept({.signature = bookkeeping_signature(setting(action.group), "reduce"),
                      .bytes = 1,
                      .sharing_workers = blueprint_.group(action.group).workers}),
                bucket_bytes() * slots_of(blueprint_, action.group).count};
      int summed = 0;
      for (std::uint32_t g = 0; g < groups_of(blueprint_.plan).size(); ++g)
        summed +=
            sums_own_slots(blueprint_, GroupId{g}) ? 1 : slots_of(blueprint_, GroupId{g}).count;
      return {met(bookkeeping_signature(owner, "reduce"), 1),
              bucket_bytes() * std::max(summed, gradient_slots(blueprint_.plan) > 1 ? 2 : 1)};
    }
    case Phase::measure:
      return {met(bookkeeping_signature(owner, "measure"), 1), bucket_bytes()};
    case Phase::clip:
      return {met(bookkeeping_signature(owner, "clip"), 8),
              static_cast<double>(blueprint_.buckets.size())};
    case Phase::update:
      return {met(update_signature(owner, blueprint_.optimizer), 6), bucket_bytes()};
    case Phase::exchange_sums:
    case Phase::exchange_gradient_sums:
    case Phase::exchange_group_sums:
    case Phase::running_sum:
    case Phase::exchange:
    case Phase::exchange_results:  // no worker is busy with them
    case Phase::pack:
    case Phase::forward:
    case Phase::backward:
    case Phase::weight_gradient:
      break;
  }
  return {};
}

std::vector<CostPiece> CostNames::packs(const Action& action) const {
  std::vector<CostPiece> all;
  for (const NodeId id : blueprint_.buckets[action.bucket.value].nodes) {
    const std::size_t room = blueprint_.packed_room[action.group.value][id.value];
    if (room == 0) continue;
    all.push_back({kept({.signature = pack_signature(blueprint_.graph, blueprint_.graph.node(id),
                                                     setting(action.group)),
                         .bytes = 2 * static_cast<double>(room),
                         .sharing_workers = blueprint_.group(action.group).workers}),
                   1});
  }
  return all;
}

int CostNames::workers() const {
  int workers = blueprint_.plan.loaders;
  for (const DeviceGroup* group : groups_of(blueprint_.plan)) workers += group->workers;
  return workers;
}

bool CostNames::one_piece(const Task& task) const {
  return !task.on_host && blueprint_.group(task.group).kind == DeviceKind::cuda;
}

CostPiece CostNames::whole(const Task& task, std::int64_t samples) const {
  std::string mark;
  double bytes = 0, flops = 0;
  // A task of no chunk costs the same however the batch is cut.
  if (!std::ranges::any_of(task.actions, [](const Action& each) { return of_chunk(each.phase); }))
    samples = 1;
  for (const Action& action : task.actions) {
    mark += phase_name(action.phase);
    for (const CostPiece& piece : pieces(action, samples)) {
      mark += piece.name->signature;
      // Bookkeeping's size is not of samples, and two buckets may differ.
      if (piece.size != static_cast<double>(samples)) mark += std::to_string(piece.size);
      bytes += piece.name->bytes * piece.size;
      flops += piece.name->flops * piece.size;
    }
  }
  const KernelSetting where = setting(task.group);
  const double size = std::max<double>(1, static_cast<double>(samples));
  return {kept({.signature = where.device + " " + std::string(layout_name(where.layout)) + " " +
                             std::string(precision_name(where.precision)) + " | task " +
                             sha256_hex(mark).substr(0, 16),
                .flops = flops / size,
                .bytes = bytes / size,
                .sharing_workers = 1}),
          size};
}

std::vector<CostPiece> CostNames::pieces(const Action& action, std::int64_t samples) const {
  if (action.phase == Phase::pack) return packs(action);
  if (travels(action.phase)) return {};
  if (!runs_part(action.phase)) return {bookkeeping(action, samples)};
  const SegmentPlace& segment = blueprint_.segments[action.segment.value];
  const Program& program = pass_ == Pass::evaluate ? segment.evaluate : segment.train;
  const Part& part = part_of(program, action);
  const GroupId group = blueprint_.chunks[action.chunk.value].group;
  std::vector<CostPiece> all;
  all.reserve(part.size());
  for (const Instruction& step : part)
    all.push_back({instruction(step, group), static_cast<double>(samples)});
  return all;
}

}  // namespace regatta
