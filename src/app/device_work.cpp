#include "app/device_work.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "app/chunks_by_speed.h"
#include "tasks/placement.h"

namespace regatta::app {
namespace {

// Numbers of workers of a group that may be at work at a time, with their speed together: those
// between them are no faster for their number. The fastest work first.
std::vector<std::pair<int, double>> busy_workers(const DeviceGroup& group) {
  std::vector<double> speeds(static_cast<std::size_t>(group.workers), 1);
  for (std::size_t w = 0; w < group.powers.size(); ++w) speeds[w] = 1 / group.powers[w].slow;
  std::ranges::sort(speeds, std::greater<>());
  std::vector<std::pair<int, double>> found;
  double together = 0;
  for (std::size_t w = 0; w < speeds.size(); ++w) {
    together += speeds[w];
    if (w == 0 || w + 1 == speeds.size() || speeds[w + 1] != speeds[w])
      found.emplace_back(static_cast<int>(w) + 1, together);
  }
  return found;
}

std::size_t segment_of(const Task& task, const Blueprint& blueprint) {
  const Action& first = task.actions.front();
  const bool of_bucket = first.phase == Phase::reduce || first.phase == Phase::measure ||
                         first.phase == Phase::update || first.phase == Phase::pack;
  return of_bucket ? blueprint.buckets[first.bucket.value].segment.value : first.segment.value;
}

}  // namespace

DeviceMeasure::DeviceMeasure(const Graph& graph, const Recipe& recipe, const PlatformNode& node,
                             std::string group, const sim::Profiles& profiles, NodeOptions options)
    : graph_(graph),
      recipe_(recipe),
      group_(std::move(group)),
      profiles_(profiles),
      options_(std::move(options)) {
  platform_.name = node.name;
  platform_.nodes = {node};
}

ShareCost DeviceMeasure::of(const Cut& cut) const {
  Platform alike = platform_;  // nodes with the same share
  alike.nodes.front().count = cut.nodes;
  const Plan plan = plan_of(cut, alike);
  sim::PreparedFleet fleet(graph_, recipe_, alike, profiles_);
  fleet.follow(plan);
  const sim::RankKind& kind = fleet.fleet().kinds.front();
  const std::size_t segments = kind.blueprint->segments.size();
  ShareCost cost;
  cost.samples = static_cast<double>(cut.groups);
  for (auto* each : {&cost.seconds, &cost.forward, &cost.updates}) each->resize(segments, 0);
  cost.low = cost.typical = Work(segments);
  const DeviceGroup& group = *groups_of(plan).front();
  cost.lanes = group.lanes;
  cost.team = group.team;
  const double workers = full_workers(group);
  for (const Task& task : kind.list->tasks) {
    add_work(cost, task, kind, group);
    if (task.on_host) continue;
    const double took = kind.costs->of(task, group.workers).seconds / workers;
    const std::size_t segment = segment_of(task, *kind.blueprint);
    if (task.flops <= 0) {
      cost.updates[segment] += took;
      continue;
    }
    cost.seconds[segment] += took;
    // A task that goes forward and back does a third of its work forward.
    const Phase first = task.actions.front().phase, last = task.actions.back().phase;
    const bool back = last == Phase::backward || last == Phase::weight_gradient;
    const bool ahead = first == Phase::forward || first == Phase::load;
    cost.forward[segment] += took * (ahead ? (back ? 1.0 / 3 : 1) : 0);
  }
  const auto memory = fleet.memory(0);
  cost.bytes = static_cast<double>(memory.front().bytes);
  cost.room = static_cast<double>(memory.front().room);
  cost.measured = kind.costs->measured_shares(*kind.list, group.workers).any_size;
  return cost;
}

double DeviceMeasure::by_speed(std::int64_t groups) const {
  double least = std::numeric_limits<double>::infinity();
  if (options_.plan.chunks) return least;
  const Plan plan = plan_of({.groups = groups, .segments = "step"}, platform_);
  for (const SpeedChunks& each : chunks_by_speed(graph_, recipe_, platform_, profiles_, plan))
    least = std::min(least, each.shares.way);
  return least;
}

Plan DeviceMeasure::plan_of(const Cut& cut, const Platform& platform) const {
  NodeOptions options = options_;
  options.plan.segments = options.plan.segments.value_or(cut.segments);
  const std::int64_t samples = cut.groups * granule_of(graph_);
  // The user's list of sizes is of the whole batch.
  if (auto& chunks = options.plan.chunks;
      chunks && chunks->size() > 1 && std::reduce(chunks->begin(), chunks->end()) != samples)
    chunks.reset();
  if (cut.chunks > 0) options.plan.chunks = {{cut.chunks}};
  if (cut.workers > 0) options.workers = cut.workers;
  std::vector<DeviceShare> devices;
  for (const NamedNode& node : all_nodes(platform))
    devices.push_back({node.name, group_, samples, {}, cut.team});
  Plan plan = plan_for_devices(graph_, recipe_, platform, devices, options);
  // Loading must not be part of a task that computes. A GPU's never is.
  if (groups_of(plan).front()->kind == DeviceKind::cpu) plan.gather_phases = false;
  return plan;
}

void DeviceMeasure::add_work(ShareCost& cost, const Task& task, const sim::RankKind& kind,
                             const DeviceGroup& group) const {
  const Phase first = task.actions.front().phase;
  // The cores of a node with nothing else load what they compute on.
  const bool loads =
      task.on_host && platform_.nodes.front().groups.size() == 1 && group.kind == DeviceKind::cpu;
  if (task.on_host && !loads) return;
  const bool computes = !loads && task.flops > 0;
  const bool meets =
      first == Phase::reduce || first == Phase::combine || first == Phase::combine_gradient;
  const bool steps = first == Phase::measure || first == Phase::update || first == Phase::pack;
  if (!loads && !computes && !meets && !steps) return;
  const std::size_t segment = loads ? 0 : segment_of(task, *kind.blueprint);
  const std::optional<ChunkId> chunk = computed_chunk(task);
  const bool in_chain = computes && chunk && chunk->value == 0 && !only_weight_gradients(task);
  const std::vector<std::pair<int, double>> busy = busy_workers(group);
  for (const auto& [work, end] :
       {std::pair(&cost.low, &Estimate::low), std::pair(&cost.typical, &Estimate::seconds)}) {
    // Where workers hinder each other, fewer of them at a time may need less.
    double seconds = std::numeric_limits<double>::infinity(), least = seconds;
    for (const auto& [workers, speed] : busy) {
      const double took = kind.costs->of(task, workers).*end;
      seconds = std::min(seconds, took / speed);
      least = std::min(least, took);
    }
    const double core_s = least * group.team;
    if (in_chain) work->chain_s += least / busy.front().second;
    double& all_s = loads   ? work->load_s
                    : meets ? work->meeting_s
                    : steps ? work->update_s[segment]
                            : work->seconds[segment];
    double& all_core_s = loads   ? work->load_core_s
                         : meets ? work->meeting_core_s
                         : steps ? work->update_core_s[segment]
                                 : work->core_s[segment];
    all_s += seconds;
    all_core_s += core_s;
  }
}

}  // namespace regatta::app
