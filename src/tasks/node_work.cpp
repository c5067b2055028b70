#include "tasks/node_work.h"

#include <algorithm>
#include <map>
#include <utility>

#include "tasks/dependencies.h"
#include "tasks/placement.h"
#include "tasks/policy.h"
#include "tasks/split_updates.h"
#include "tasks/stages.h"

namespace regatta {
namespace {

// Bytes of the sums that a rank sends to the others at a batch norm.
std::size_t meeting_bytes(const Blueprint& blueprint, const Action& action) {
  const std::vector<NodeId>& meetings = blueprint.segments[action.segment.value].train.meetings;
  const bool back = action.phase == Phase::combine_gradient;
  const NodeId node = meetings[back ? meetings.size() - 1 - action.part : std::size_t{action.part}];
  return partials_rows * padded_channels(blueprint.graph.node(node).shape.channels()) *
         sizeof(double);
}

}  // namespace

NodeCosts::NodeCosts(const Blueprint& blueprint, const TaskList& list, const TaskCosts& costs)
    : blueprint_(blueprint), list_(list), runtime_(costs.runtime()) {
  make_pools();
  for (const Task& task : list.tasks) pool_of_.push_back(pool_for(task));
  make_lines(costs);
}

NodeWork::NodeWork(const Blueprint& blueprint, const TaskList& list, const TaskCosts& costs,
                   std::vector<FixedPlace> places, bool several_ranks)
    : NodeCosts(blueprint, list, costs) {
  exchanged_.resize(list.tasks.size());
  if (several_ranks) find_exchanges();
  levels_.resize(pools().size());
  for (std::uint32_t g = 0; g < groups_of(blueprint.plan).size(); ++g)
    levels_[g] = costs.spread(GroupId{g});
  submission_ = regatta::submitted_after(list, runtime());
  if (staged()) submit_side_by_side();
  submission_seconds_ = std::ranges::max(submission_);
  connect();
  places_ = StepPlaces(std::move(places), workers_of(blueprint.plan).size(),
                       pace_of(blueprint.plan, busiest_seconds(), ranks_));
}

void NodeWork::find_exchanges() {
  constexpr std::size_t nobody = ~std::size_t{0};
  for (const Bucket& bucket : blueprint().buckets) {
    awaiting_.push_back(nobody);
    exchange_bytes_.push_back(static_cast<double>(blueprint().wire_bytes(bucket)));
  }
  for (std::size_t t = 0; t < list().tasks.size(); ++t) {
    // With clipping a bucket is measured before it is updated: the first to come waits.
    for (const BucketId bucket : awaited_buckets(list().tasks[t])) {
      if (awaiting_[bucket.value] != nobody) continue;
      awaiting_[bucket.value] = t;
      exchanged_[t].push_back({bucket.value});
    }
    if (!blueprint().several_ranks) continue;
    for (const Action& action : list().tasks[t].actions) {
      if (action.phase != Phase::combine && action.phase != Phase::combine_gradient) continue;
      exchanged_[t].push_back({static_cast<std::uint32_t>(awaiting_.size())});
      awaiting_.push_back(t);
      exchange_bytes_.push_back(static_cast<double>(meeting_bytes(blueprint(), action)));
    }
  }
}

// Each stage of a pipeline its own tasks.
void NodeWork::submit_side_by_side() {
  std::vector<double> submitted(pools().size(), 0);
  double before = 0;
  for (std::size_t t = 0; t < submission_.size(); ++t) {
    double& mine = submitted[static_cast<std::size_t>(pool_of(t))];
    mine += submission_[t] - std::exchange(before, submission_[t]);
    submission_[t] = mine;
  }
}

void NodeCosts::make_pools() {
  const auto groups = groups_of(blueprint_.plan);
  host_ = -1;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const bool cpu = groups[g]->kind == DeviceKind::cpu;
    if (cpu) host_ = static_cast<int>(g);
    // Memory 0 is the node's own; stages are on nodes of their own.
    pools_.push_back({groups[g]->name, groups[g]->kind, cpu ? groups[g]->workers : 1,
                      cpu && !staged() ? 0 : static_cast<int>(g) + 1, cpu ? groups[g]->team : 1});
  }
  memories_ = static_cast<int>(groups.size()) + 1;
  if (std::ranges::all_of(pools_, [](const Pool& pool) { return pool.memory == 0; })) memories_ = 1;
  if (host_ >= 0 && !(staged() && blueprint_.plan.loaders > 0)) return;
  host_ = static_cast<int>(pools_.size());
  pools_.push_back({"host", DeviceKind::cpu, std::max(blueprint_.plan.loaders, 1), 0});
}

int NodeCosts::pool_for(const Task& task) const {
  const auto group = static_cast<int>(task.group.value);
  // A stage's cores load and deliver for themselves.
  const bool own = staged() && pools_[task.group.value].kind == DeviceKind::cpu;
  return task.on_host && !own ? host_ : group;
}

// Chunks of one size have one cost, so most tasks are looked up once for many.
void NodeCosts::make_lines(const TaskCosts& costs) {
  std::map<std::vector<std::int64_t>, Line> known;
  for (std::size_t t = 0; t < list_.tasks.size(); ++t) {
    const Task& task = list_.tasks[t];
    std::vector<std::int64_t> key{pool_of_[t], task.on_host ? 1 : 0};
    for (const Action& action : task.actions) {
      for (const std::int64_t each :
           {std::int64_t{static_cast<int>(action.phase)}, std::int64_t{action.segment.value},
            std::int64_t{action.part}, std::int64_t{action.bucket.value},
            std::int64_t{action.group.value}})
        key.push_back(each);
      if (!of_chunk(action.phase)) continue;
      const Chunk& chunk = blueprint_.chunks[action.chunk.value];
      key.push_back(chunk.capacity);
      key.push_back(blueprint_.begins_slot(chunk) ? 1 : 0);
    }
    const auto [found, fresh] = known.try_emplace(std::move(key));
    if (fresh) {
      const int all = pools_[static_cast<std::size_t>(pool_of_[t])].workers;
      const Estimate alone = costs.of(task, 1);
      Line& line = found->second;
      line.alone = std::max(alone.seconds, 0.0);
      if (all > 1) line.each = (costs.of(task, all).seconds - line.alone) / (all - 1);
      if (line.alone > 0) {
        line.below = std::clamp(1 - alone.low / line.alone, 0.0, 1.0);
        line.above = std::max(alone.high / line.alone - 1, 0.0);
      }
    }
    lines_.push_back(found->second);
  }
  const std::vector<double> contention = contention_of(blueprint_, list_);
  for (std::size_t t = 0; t < lines_.size(); ++t) lines_[t].each *= contention[t];
}

double NodeCosts::seconds(std::size_t task, int busy, double shift) const {
  const Line& line = lines_[task];
  const double factor = 1 + shift * (shift < 0 ? line.below : line.above);
  return std::max(0.0, (line.alone + line.each * (busy - 1)) * factor);
}

Spread NodeWork::spread(std::size_t pool, std::uint64_t seed) const {
  return {blueprint(), list(), levels_[pool], pools()[pool].workers, seed};
}

std::optional<ChunkId> NodeWork::home_chunk(std::size_t task) const {
  for (const Action& action : list().tasks[task].actions)
    if (action.phase == Phase::load || runs_part(action.phase)) return action.chunk;
  return std::nullopt;
}

// By task, while all workers of its pool are busy.
std::vector<double> NodeWork::busiest_seconds() const {
  std::vector<double> all;
  for (std::size_t t = 0; t < tasks(); ++t)
    all.push_back(seconds(t, pools()[static_cast<std::size_t>(pool_of(t))].workers, 0));
  return all;
}

// After the first few steps what waits for what repeats with the period of the rings.
void NodeWork::connect() {
  const std::size_t count = tasks();
  const std::size_t period = static_cast<std::size_t>(steps_in_flight());
  Dependencies dependencies;
  for (std::size_t step = 0; step < 2 * period + 1; ++step) {
    const auto edges = dependencies.follow(list(), step, static_cast<std::int64_t>(step * count));
    if (step == 0) ranks_ = staged() ? fill_drain_ranks(list()) : ranks(busiest_seconds(), edges);
    Pattern pattern;
    pattern.waits.assign(count, 0);
    for (const auto& [task, on] : edges) {
      const std::size_t back = step - static_cast<std::size_t>(on) / count;
      if (pattern.successors.size() <= back)
        pattern.successors.resize(back + 1, std::vector<std::vector<std::uint32_t>>(count));
      const std::size_t index = static_cast<std::size_t>(task) % count;
      pattern.successors[back][static_cast<std::size_t>(on) % count].push_back(
          static_cast<std::uint32_t>(index));
      ++pattern.waits[index];
    }
    furthest_ = std::max(furthest_, pattern.successors.size());
    patterns_.push_back(std::move(pattern));
  }
}

std::size_t NodeWork::pattern_of(std::int64_t step) const {
  const std::size_t period = static_cast<std::size_t>(steps_in_flight());
  const auto number = static_cast<std::size_t>(step);
  return number < patterns_.size() ? number : period + 1 + (number - period - 1) % period;
}

const std::vector<std::uint32_t>& NodeWork::successors(std::int64_t step, std::size_t back,
                                                       std::size_t task) const {
  static const std::vector<std::uint32_t> none;
  const Pattern& pattern = patterns_[pattern_of(step)];
  return back < pattern.successors.size() ? pattern.successors[back][task] : none;
}

const std::vector<std::uint32_t>& NodeWork::waits(std::int64_t step) const {
  return patterns_[pattern_of(step)].waits;
}

int NodeWork::home_memory(std::uint32_t buffer) const {
  const Buffer& what = list().buffers[buffer];
  if (staged()) return -1;  // wherever its stage is
  const auto memory_of = [&](GroupId group) { return pools()[group.value].memory; };
  switch (what.kind) {
    case BufferKind::packed:
      return memory_of(GroupId{what.second});
    case BufferKind::statistics:
      return blueprint().group_samples > 0 ? -1 : memory_of(blueprint().owner);
    case BufferKind::state:
    case BufferKind::parameters:
    case BufferKind::moment:
    case BufferKind::average:
      return memory_of(blueprint().owner);
    default:
      return -1;
  }
}

}  // namespace regatta
