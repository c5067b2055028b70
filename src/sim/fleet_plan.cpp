#include "sim/fleet_plan.h"

#include <algorithm>

#include "base/error.h"
#include "plan/shares.h"
#include "tasks/footprint.h"
#include "tasks/placement.h"
#include "tasks/stages.h"

namespace regatta::sim {
namespace {

constexpr std::size_t most_stages = 62;  // their memories are bits of a word

// A place where a rank can be.
struct Site {
  int node = 0;
  Device device;
  const PlatformGroup* group = nullptr;
};

std::vector<Site> sites_of(const Wiring& wiring) {
  std::vector<Site> sites;
  for (int node = 0; node < wiring.nodes(); ++node) {
    const std::vector<PlatformGroup>& groups = wiring.node(node).groups;
    const bool gpus = std::ranges::any_of(
        groups, [](const PlatformGroup& group) { return group.kind == DeviceKind::cuda; });
    for (int g = 0; g < static_cast<int>(groups.size()); ++g) {
      const PlatformGroup& group = groups[static_cast<std::size_t>(g)];
      if (gpus != (group.kind == DeviceKind::cuda)) continue;
      for (int unit = 0; unit < (gpus ? group.count : 1); ++unit)
        sites.push_back({node, {g, unit}, &group});
    }
  }
  return sites;
}

// Of ranks on these sites, as far as the platform tells.
std::vector<double> speeds_of(const std::vector<Site>& sites) {
  std::vector<double> speeds;
  for (const Site& site : sites) {
    const bool cpu = site.group->kind == DeviceKind::cpu;
    speeds.push_back(site.group->costs.flops * (cpu ? site.group->count : 1));
    if (speeds.back() <= 0)
      throw InputError("--shares speed: group '" + site.group->name +
                       "' says nothing of its flops; add them to its costs");
  }
  return speeds;
}

}  // namespace

PreparedFleet::Kind::Kind(const Graph& graph, const Recipe& recipe, const Plan& plan,
                          std::vector<std::shared_ptr<const Profile>> profiles)
    : blueprint(make_blueprint(graph, plan, numbers_of(recipe), true)) {
  if (plan.stages.empty()) {
    list = lower(blueprint, Job::train);
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
}

std::shared_ptr<const Profile> PreparedFleet::profile_of(
    const std::vector<const PlatformGroup*>& devices) const {
  for (const PlatformGroup* device : devices)
    if (const auto found = profiles_.find(device->costs.profile); found != profiles_.end())
      return found->second;
  return nullptr;
}

int PreparedFleet::kind_of(const std::string& key, const Plan& plan,
                           const std::vector<const PlatformGroup*>& devices) {
  const auto [found, fresh] = numbers_.try_emplace(key, static_cast<int>(kinds_.size()));
  if (!fresh) return found->second;
  std::vector<std::shared_ptr<const Profile>> profiles;
  if (plan.stages.empty())
    profiles = {profile_of(devices)};
  else
    for (const PlatformGroup* device : devices) profiles.push_back(profile_of({device}));
  kinds_.push_back(std::make_unique<Kind>(graph_, recipe_, plan, std::move(profiles)));
  Kind& kind = *kinds_.back();
  std::vector<DeviceSpeed> speeds;
  for (std::uint32_t g = 0; g < devices.size(); ++g) {
    // A team works as one.
    PlatformGroup device = *devices[g];
    const DeviceGroup& group = *groups_of(plan)[g];
    if (device.kind == DeviceKind::cpu) device.costs.flops *= group.team;
    speeds.push_back(speed_of(device, kind.list, *kind.measured, GroupId{g}));
    kind.rooms.push_back(static_cast<std::size_t>(device.memory));
    estimated_ = estimated_ || device.costs.estimate();
  }
  kind.costs = std::make_unique<DeviceCosts>(kind.list, *kind.measured, std::move(speeds));
  fleet_.kinds.push_back({&kind.blueprint, &kind.list, kind.costs.get()});
  return found->second;
}

// --- following a plan ----------------------------------------------------------------------------

std::vector<Device> PreparedFleet::devices_for(const Plan& plan, const PlatformNode& node) const {
  std::vector<Device> devices;
  std::vector<int> taken(node.groups.size(), 0);  // of GPUs: units
  for (const DeviceGroup* group : groups_of(plan)) {
    const auto free = [&](std::size_t g) {
      const PlatformGroup& device = node.groups[g];
      return device.kind == group->kind &&
             (device.kind == DeviceKind::cpu || taken[g] < device.count);
    };
    std::size_t chosen = node.groups.size();
    for (std::size_t g = 0; g < node.groups.size(); ++g)
      if (free(g) && (chosen == node.groups.size() || node.groups[g].name == group->name))
        chosen = g;
    if (chosen == node.groups.size())
      throw InputError("the plan's group '" + group->name + "' has no device: node '" + node.name +
                       "' of platform '" + fleet_.platform.name + "' has no free " +
                       std::string(device_kind_name(group->kind)));
    devices.push_back({static_cast<int>(chosen), taken[chosen]++});
  }
  return devices;
}

int PreparedFleet::node_for(const Plan& plan, std::size_t n) const {
  int node = 0;
  while (node < wiring_.nodes() && wiring_.node_name(node) != plan.nodes[n].name) ++node;
  if (node < wiring_.nodes()) return node;
  if (plan.nodes.size() == 1) return 0;
  throw InputError("platform '" + fleet_.platform.name + "' has no node '" + plan.nodes[n].name +
                   "', which the plan names");
}

void PreparedFleet::follow_stages(const Plan& plan) {
  Rank rank;
  std::vector<const PlatformGroup*> groups;
  for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
    const int node = node_for(plan, n);
    for (const Device device : devices_for(plan_of_node(plan, n), wiring_.node(node))) {
      rank.devices.push_back(device);
      rank.nodes.push_back(node);
      groups.push_back(&wiring_.node(node).groups[static_cast<std::size_t>(device.group)]);
    }
  }
  if (groups.size() > most_stages)
    throw InputError("the plan has stages on " + std::to_string(groups.size()) +
                     " groups: at most " + std::to_string(most_stages) + " can be simulated");
  // Who loads sits with the first stage.
  rank.node = rank.nodes[owners_of_segments(plan).front().value];
  rank.kind = kind_of("stages", plan, groups);
  fleet_.ranks.push_back(std::move(rank));
  batch_ = recipe_.batch;
}

void PreparedFleet::follow(const Plan& plan) {
  if (!plan.stages.empty()) return follow_stages(plan);
  fleet_.update = plan.update;
  for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
    const int node = node_for(plan, n);
    const Plan own = plan_of_node(plan, n);
    const std::vector<Device> devices = devices_for(own, wiring_.node(node));
    std::vector<const PlatformGroup*> groups;
    std::string key = std::to_string(wiring_.place(node).entry);
    for (std::size_t g = 0; g < devices.size(); ++g) {
      groups.push_back(&wiring_.node(node).groups[static_cast<std::size_t>(devices[g].group)]);
      key += "/" + std::to_string(devices[g].group);
    }
    for (const DeviceGroup* group : groups_of(own)) {
      key += "/" + std::to_string(group->workers) + "x" + std::to_string(group->team);
      for (const std::int64_t chunk : group->chunks) key += "," + std::to_string(chunk);
    }
    for (const std::vector<std::uint32_t>& worker : own.order) {
      key += "/";
      for (const std::uint32_t task : worker) key += "," + std::to_string(task);
    }
    fleet_.ranks.push_back({kind_of(key, own, groups), node, devices});
    batch_ += share_of(plan.nodes[n]);
  }
}

// --- spreading over a platform -------------------------------------------------------------------

void PreparedFleet::spread(const Spread& spread) {
  std::vector<Site> sites = sites_of(wiring_);
  const auto there = static_cast<int>(sites.size());
  if (spread.ranks > there)
    throw InputError("--ranks " + std::to_string(spread.ranks) + ": platform '" +
                     fleet_.platform.name + "' has room for " + std::to_string(there));
  if (spread.ranks > 0) sites.resize(static_cast<std::size_t>(spread.ranks));
  const auto count = static_cast<std::int64_t>(sites.size());
  std::vector<std::int64_t> batches(sites.size(), spread.batch);
  if (spread.by_speed) batches = shares_by_speed(speeds_of(sites), spread.batch * count);
  fleet_.update = spread.update;
  fleet_.server_sends_last = spread.server_sends_last;
  const double flops = spread.images_per_s * step_flops(graph_);
  for (std::size_t i = 0; i < sites.size(); ++i) {
    const Site& site = sites[i];
    const bool cpu = site.group->kind == DeviceKind::cpu;
    const std::string key = std::to_string(wiring_.place(site.node).entry) + "/" +
                            std::to_string(site.device.group) + "/" + std::to_string(batches[i]);
    batch_ += batches[i];
    if (const auto known = numbers_.find(key); known != numbers_.end()) {
      fleet_.ranks.push_back({known->second, site.node, {site.device}});
      continue;
    }
    PlanOptions options = spread.plan;
    const int cores = cpu ? site.group->count : 4;
    options.workers = spread.workers > 0 ? std::min(spread.workers, cores) : cores;
    const bool one_team = cpu && sites.size() > 1 && !options.chunks;
    options.team =
        spread.team > 0 ? std::min(spread.team, options.workers) : (one_team ? options.workers : 1);
    options.devices = {site.group->kind};
    Recipe recipe = recipe_;
    recipe.batch = batches[i];
    Plan plan = make_plan(graph_, recipe, options);
    // All ranks must cut their gradients alike.
    if (sites.size() > 1) plan.bucket_bytes = Plan{}.bucket_bytes;
    PlatformGroup device = *site.group;
    if (flops > 0) {
      device.costs.profile.clear();
      device.costs.flops = flops / (cpu ? site.group->count : 1);
    }
    fleet_.ranks.push_back({kind_of(key, plan, {&device}), site.node, {site.device}});
  }
}

int PreparedFleet::room() const { return static_cast<int>(sites_of(wiring_).size()); }

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
