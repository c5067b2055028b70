#include "tasks/stages.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace regatta {
namespace {

bool goes_back(Phase phase) {
  return phase == Phase::backward || phase == Phase::weight_gradient ||
         phase == Phase::combine_gradient;
}
bool settles(Phase phase) {
  return phase == Phase::reduce || phase == Phase::measure || phase == Phase::clip ||
         phase == Phase::update || phase == Phase::pack;
}

// In the order of a step: forward through the stages, back through them, then what waits for all
// gradients.
class Merging {
 public:
  Merging(const Plan& plan, const std::vector<Blueprint>& stages)
      : owners_(owners_of_segments(plan)), clips_(stages.front().optimizer.clip_norm > 0) {
    for (const Blueprint& stage : stages) lists_.push_back(lower(stage, ListKind::train));
  }

  TaskList run() {
    const auto last = static_cast<std::uint32_t>(owners_.size()) - 1;
    take(0, [](Phase phase) { return phase == Phase::load; });
    for (std::uint32_t s = 0; s <= last; ++s)
      take(s, [](Phase phase) {
        return phase == Phase::forward || phase == Phase::combine || phase == Phase::track;
      });
    take(last, [](Phase phase) { return phase == Phase::deliver; });
    for (std::uint32_t s = last + 1; s-- > 0;)
      take(s, [&](Phase phase) {
        return goes_back(phase) || phase == Phase::reduce || phase == Phase::measure ||
               (!clips_ && settles(phase));
      });
    if (!clips_) return std::move(made_);
    take(0, [](Phase phase) { return phase == Phase::clip; });
    for (std::uint32_t s = 0; s <= last; ++s)
      take(s, [](Phase phase) { return phase == Phase::update || phase == Phase::pack; });
    return std::move(made_);
  }

 private:
  // The tasks of a segment's owner that work on the segment, or on none, in these phases. Tasks of
  // such lists do one thing.
  template <class Wanted>
  void take(std::uint32_t segment, Wanted wanted) {
    const GroupId owner = owners_[segment];
    const TaskList& list = lists_[owner.value];
    for (const Task& task : list.tasks) {
      const Action& what = task.actions.front();
      if (!wanted(what.phase)) continue;
      const bool of_segment = goes_back(what.phase) || what.phase == Phase::forward ||
                              what.phase == Phase::combine || what.phase == Phase::track ||
                              (settles(what.phase) && what.phase != Phase::clip);
      if (of_segment && what.segment.value != segment) continue;
      add(task, list, owner);
    }
  }

  void add(Task task, const TaskList& list, GroupId owner) {
    task.group = owner;
    for (Action& action : task.actions)
      if (action.phase == Phase::pack) action.group = owner;
    // Only who loads has the samples; the last stage knows the targets.
    const bool loads_here = owner == owners_.front();
    std::erase_if(task.accesses, [&](const Access& access) {
      return !loads_here && list.buffers[access.buffer].kind == BufferKind::samples;
    });
    for (Access& access : task.accesses) access.buffer = number(list.buffers[access.buffer], owner);
    made_.tasks.push_back(std::move(task));
  }

  // The stage that writes a value first decides its layout.
  std::uint32_t number(Buffer buffer, GroupId owner) {
    if (buffer.kind == BufferKind::packed) buffer.second = owner.value;
    const auto [found, fresh] =
        numbers_.try_emplace(std::tuple(buffer.kind, buffer.first, buffer.second),
                             static_cast<std::uint32_t>(made_.buffers.size()));
    if (fresh) made_.buffers.push_back(buffer);
    return found->second;
  }

  std::vector<GroupId> owners_;  // by segment
  bool clips_;
  std::vector<TaskList> lists_;  // by group
  TaskList made_;
  std::map<std::tuple<BufferKind, std::uint32_t, std::uint32_t>, std::uint32_t> numbers_;
};

}  // namespace

std::vector<GroupId> owners_of_segments(const Plan& plan) {
  std::vector<GroupId> owners(plan.segments.size());
  for (const Stage& stage : plan.stages) {
    GroupId group;
    for (const PlanNode& node : plan.nodes)
      for (const DeviceGroup& each : node.groups) {
        if (node.name == stage.node && each.name == stage.group)
          for (std::uint32_t s = stage.first; s <= stage.last; ++s) owners[s] = group;
        ++group.value;
      }
  }
  return owners;
}

std::vector<Blueprint> stage_blueprints(const Graph& graph, const Plan& plan,
                                        const Numbers& numbers) {
  std::vector<Blueprint> blueprints;
  for (const DeviceGroup* group : groups_of(plan)) {
    Plan own = plan;
    own.nodes = {{"stage", {*group}}};
    own.stages.clear();
    own.gather_phases = false;
    own.gather_loads = false;
    own.cpus = 0;
    blueprints.push_back(make_blueprint(graph, own, numbers, true));
  }
  return blueprints;
}

TaskList lower_stages(const Plan& plan, const std::vector<Blueprint>& stages) {
  return Merging(plan, stages).run();
}

std::vector<double> fill_drain_ranks(const TaskList& list) {
  // Smaller is sooner. What chunks meet at goes before the chunks.
  using Turn = std::tuple<int, std::int64_t, std::size_t>;
  std::vector<Turn> turns;
  for (std::size_t t = 0; t < list.tasks.size(); ++t) {
    const Action& what = list.tasks[t].actions.front();
    const bool meets = what.phase == Phase::combine || what.phase == Phase::combine_gradient;
    const bool fills_gaps =
        settles(what.phase) || what.phase == Phase::track || what.phase == Phase::weight_gradient;
    const int half = fills_gaps ? 2 : goes_back(what.phase) ? 1 : 0;
    turns.emplace_back(half, meets ? -1 : std::int64_t{what.chunk.value}, t);
  }
  std::ranges::sort(turns);
  // Below zero, so that nothing is nearly as urgent as the first.
  std::vector<double> ranks(list.tasks.size());
  for (std::size_t i = 0; i < turns.size(); ++i)
    ranks[std::get<std::size_t>(turns[i])] = -static_cast<double>(i) - 1;
  return ranks;
}

std::vector<Footprint> stage_footprints(const Plan& plan, const TaskList& list) {
  const auto groups = groups_of(plan);
  std::set<std::tuple<GroupId, bool, std::uint32_t>> seen;
  FootprintSums sums;
  for (const Task& task : list.tasks)
    for (const Access& access : task.accesses) {
      const Buffer& buffer = list.buffers[access.buffer];
      // Samples that are loaded for a GPU lie in its node's memory too.
      const bool host = task.on_host && groups[task.group.value]->kind == DeviceKind::cuda;
      if (seen.emplace(task.group, host, access.buffer).second)
        sums[{task.group, host, buffer.kind}] +=
            buffer.bytes * static_cast<std::size_t>(buffer.copies);
    }
  return sorted_footprints(sums);
}

std::size_t stage_bytes(const std::vector<Footprint>& footprints, GroupId group) {
  std::size_t bytes = 0;
  for (const Footprint& each : footprints)
    if (each.group == group && !each.host) bytes += each.bytes;
  return bytes;
}

namespace {

// As the blueprint of its group has it.
Task in_own_group(Task task) {
  task.group = {};
  for (Action& action : task.actions) action.group = {};
  return task;
}

}  // namespace

Estimate StageCosts::of(const Task& task, int busy) const {
  return by_group_[task.group.value]->of(in_own_group(task), busy);
}

MeasuredShares StageCosts::measured_shares(const TaskList& list, int busy) const {
  MeasuredShares known{0, 0};
  double all = 0;
  for (std::size_t g = 0; g < by_group_.size(); ++g) {
    TaskList own;
    double seconds = 0;
    for (const Task& task : list.tasks) {
      if (task.group.value != g) continue;
      own.tasks.push_back(in_own_group(task));
      seconds += by_group_[g]->of(own.tasks.back(), busy).seconds;
    }
    const MeasuredShares of_group = by_group_[g]->measured_shares(own, busy);
    known.any_size += seconds * of_group.any_size;
    known.near_size += seconds * of_group.near_size;
    all += seconds;
  }
  if (all == 0) return {0, 0};
  return {known.any_size / all, known.near_size / all};
}

}  // namespace regatta
