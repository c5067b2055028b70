#include "sim/fleet_plan.h"

#include <algorithm>

#include "base/error.h"
#include "plan/rank_plan.h"
#include "tasks/footprint.h"
#include "tasks/placement.h"
#include "tasks/stages.h"

namespace regatta::sim {
namespace {

constexpr std::size_t most_stages = 62;  // their memories are bits of a word

// Whether a plan's group is this one of a platform, or one of its units: NAME, or NAME-UNIT.
bool is_of(const DeviceGroup& group, const PlatformGroup& device) {
  if (!group.name.starts_with(device.name)) return false;
  const std::string unit = group.name.substr(device.name.size());
  return unit.empty() || (unit.size() > 1 && unit.front() == '-' &&
                          unit.find_first_not_of("0123456789", 1) == std::string::npos);
}

}  // namespace

PreparedFleet::Kind::Kind(const Graph& graph, const Recipe& recipe, const Plan& plan,
                          std::vector<std::shared_ptr<const Profile>> profiles, bool several_ranks)
    : blueprint(make_blueprint(graph, plan, numbers_of(recipe), true, several_ranks)) {
  if (plan.stages.empty()) {
    list = lower(blueprint, ListKind::train);
    measured = std::make_unique<ProfileCosts>(blueprint, profiles.front(), recipe.data);
    require_order(blueprint, list);
    return;
  }
  stages = stage_blueprints(graph, plan, numbers_of(recipe));
  list = lower_stages(plan, stages);
  std::vector<std::unique_ptr<TaskCosts>> by_group;
  for (std::size_t g = 0; g < stages.size(); ++g)
    by_group.push_back(std::make_unique<ProfileCosts>(stages[g], profiles[g], recipe.data));
  measured = std::make_unique<StageCosts>(std::move(by_group));
}

PreparedFleet::PreparedFleet(Graph graph, Recipe recipe, Platform platform, Profiles profiles)
    : graph_(std::move(graph)),
      recipe_(std::move(recipe)),
      profiles_(std::move(profiles)),
      wiring_(platform) {
  fleet_.platform = std::move(platform);
  for (int node = 0; node < wiring_.nodes(); ++node)
    nodes_by_name_.emplace(wiring_.node_name(node), node);
}

std::shared_ptr<const Profile> PreparedFleet::profile_of(
    const std::vector<const PlatformGroup*>& devices) const {
  for (const PlatformGroup* device : devices)
    if (const auto found = profiles_.find(device->costs.profile); found != profiles_.end())
      return found->second;
  return nullptr;
}

int PreparedFleet::kind_of(const std::string& key, const Plan& plan,
                           const std::vector<const PlatformGroup*>& devices, bool several_ranks) {
  const auto [found, fresh] = numbers_.try_emplace(key, static_cast<int>(kinds_.size()));
  if (!fresh) return found->second;
  std::vector<std::shared_ptr<const Profile>> profiles;
  if (plan.stages.empty())
    profiles = {profile_of(devices)};
  else
    for (const PlatformGroup* device : devices) profiles.push_back(profile_of({device}));
  kinds_.push_back(
      std::make_unique<Kind>(graph_, recipe_, plan, std::move(profiles), several_ranks));
  Kind& kind = *kinds_.back();
  std::vector<DeviceSpeed> speeds;
  for (std::uint32_t g = 0; g < devices.size(); ++g) {
    // A team works as one.
    PlatformGroup device = *devices[g];
    const DeviceGroup& group = *groups_of(plan)[g];
    if (device.kind == DeviceKind::cpu) device.costs.flops *= group.team;
    speeds.push_back(speed_of(device, kind.list, *kind.measured, GroupId{g}));
    if (!group.state.empty()) speeds.back().factor /= state_named(device, group.state).speed;
    kind.rooms.push_back(static_cast<std::size_t>(device.memory));
    estimated_ = estimated_ || device.costs.estimate();
  }
  kind.costs = std::make_unique<DeviceCosts>(kind.list, *kind.measured, std::move(speeds));
  fleet_.kinds.push_back({&kind.blueprint, &kind.list, kind.costs.get()});
  return found->second;
}

std::vector<Device> PreparedFleet::devices_for(const Plan& plan, const PlatformNode& node,
                                               std::vector<int>& taken) const {
  std::vector<Device> devices;
  taken.resize(node.groups.size(), 0);
  for (const DeviceGroup* group : groups_of(plan)) {
    const auto free = [&](std::size_t g) {
      const PlatformGroup& device = node.groups[g];
      return device.kind == group->kind &&
             (device.kind == DeviceKind::cpu || taken[g] < device.count);
    };
    std::size_t chosen = node.groups.size();
    for (std::size_t g = 0; g < node.groups.size(); ++g)
      if (free(g) && (chosen == node.groups.size() || is_of(*group, node.groups[g]))) chosen = g;
    if (chosen == node.groups.size())
      throw InputError("the plan's group '" + group->name + "' has no device: node '" + node.name +
                       "' of platform '" + fleet_.platform.name + "' has no free " +
                       std::string(device_kind_name(group->kind)));
    devices.push_back({static_cast<int>(chosen), taken[chosen]++});
  }
  return devices;
}

int PreparedFleet::node_for(const Plan& plan, std::size_t n) const {
  const auto found = nodes_by_name_.find(plan.nodes[n].name);
  if (found != nodes_by_name_.end()) return found->second;
  if (plan.nodes.size() == 1) return 0;
  throw InputError("platform '" + fleet_.platform.name + "' has no node '" + plan.nodes[n].name +
                   "', which the plan names");
}

void PreparedFleet::follow_stages(const Plan& plan) {
  Rank rank;
  std::map<int, std::vector<int>> taken;  // by node and group: units of GPUs
  std::vector<const PlatformGroup*> groups;
  for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
    const int node = node_for(plan, n);
    for (const Device device :
         devices_for(plan_of_node(plan, n), wiring_.node(node), taken[node])) {
      rank.devices.push_back(device);
      rank.nodes.push_back(node);
      groups.push_back(&wiring_.node(node).groups[static_cast<std::size_t>(device.group)]);
    }
  }
  if (groups.size() > most_stages)
    throw InputError("the plan has stages on " + std::to_string(groups.size()) +
                     " groups: at most " + std::to_string(most_stages) + " can be simulated");
  // Loaders belong to the first stage.
  rank.node = rank.nodes[owners_of_segments(plan).front().value];
  rank.kind = kind_of("stages", plan, groups, false);
  fleet_.ranks.push_back(std::move(rank));
  batch_ = recipe_.batch;
}

void PreparedFleet::follow(const Plan& plan) {
  require_no_fault(wire_hindrances(plan, recipe_));
  if (!plan.stages.empty()) return follow_stages(plan);
  fleet_.update = plan.update;
  const bool several = plan.nodes.size() > 1;
  std::map<int, std::vector<int>> taken;  // by node and group: units of GPUs
  for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
    const int node = node_for(plan, n);
    const Plan own = plan_of_node(plan, n);
    const std::vector<Device> devices = devices_for(own, wiring_.node(node), taken[node]);
    std::vector<const PlatformGroup*> groups;
    std::string key = std::to_string(wiring_.place(node).entry);
    for (std::size_t g = 0; g < devices.size(); ++g) {
      groups.push_back(&wiring_.node(node).groups[static_cast<std::size_t>(devices[g].group)]);
      key += "/" + std::to_string(devices[g].group);
    }
    for (const DeviceGroup* group : groups_of(own)) {
      key += "/" + std::to_string(group->workers) + "x" + std::to_string(group->team);
      if (!group->state.empty()) key += "/" + group->state;
      for (const WorkerPower& power : group->powers)
        key += "/" + std::to_string(power.slow) + "@" + std::to_string(power.watts);
      for (const std::int64_t chunk : group->chunks) key += "," + std::to_string(chunk);
    }
    for (const std::vector<std::uint32_t>& worker : own.order) {
      key += "/";
      for (const std::uint32_t task : worker) key += "," + std::to_string(task);
    }
    fleet_.ranks.push_back({kind_of(key, own, groups, several), node, devices});
    batch_ += share_of(plan.nodes[n]);
  }
}

int PreparedFleet::threads() const {
  return threads_of(kinds_[static_cast<std::size_t>(fleet_.ranks.front().kind)]->blueprint.plan);
}

std::vector<PreparedFleet::Memory> PreparedFleet::memory(int number) const {
  const Kind& kind = *kinds_[static_cast<std::size_t>(number)];
  const bool staged = !kind.stages.empty();
  const std::vector<Footprint> found = staged ? stage_footprints(kind.blueprint.plan, kind.list)
                                              : footprints(kind.blueprint, {&kind.list});
  std::vector<Memory> all;
  const auto groups = groups_of(kind.blueprint.plan);
  for (std::uint32_t g = 0; g < groups.size(); ++g)
    all.push_back(
        {groups[g]->name,
         staged ? stage_bytes(found, GroupId{g}) : peak_bytes(kind.blueprint, found, GroupId{g}),
         kind.rooms[g]});
  return all;
}

}  // namespace regatta::sim
