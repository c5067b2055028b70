#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <set>

#include "app/node_plan.h"
#include "app/tuning_flags.h"
#include "base/error.h"
#include "plan/segments.h"
#include "plan/shares.h"
#include "tune/plan_job.h"

namespace regatta::app {
namespace {

// For each rank of a node with GPUs, as many as it has cores for.
int loaders_on(const std::vector<NamedNode>& nodes, const std::vector<PlacedDevice>& places,
               const std::vector<std::vector<std::size_t>>& ranks) {
  int loaders = 0;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    int cores = 0, with_gpu = 0;
    for (const PlatformGroup& group : nodes[n].node->groups)
      if (group.kind == DeviceKind::cpu) cores += group.count;
    for (const std::vector<std::size_t>& rank : ranks)
      with_gpu += places[rank.front()].node == n && places[rank.back()].gpu() ? 1 : 0;
    if (with_gpu == 0) continue;
    const int here = std::clamp(cores / with_gpu, 1, most_loaders);
    loaders = loaders == 0 ? here : std::min(loaders, here);
  }
  return loaders;
}

// The samples of each place given.
Plan plan_with(const std::vector<std::int64_t>& shares, const std::vector<PlacedDevice>& places,
               const std::vector<NamedNode>& nodes, const Graph& graph, const Recipe& recipe,
               const Platform& platform, const NodeOptions& options) {
  const std::vector<std::vector<std::size_t>> ranks = ranks_of(places);
  Plan plan;
  plan.recipe = recipe.fingerprint();
  plan.platform = platform.fingerprint();
  plan.reduction = options.plan.reduction;
  plan.backward = options.plan.backward.value_or(Backward::whole);
  // Where gradients travel, they leave while others are still computed.
  plan.segments =
      segments_named(graph, options.plan.segments.value_or(ranks.size() > 1 ? "block" : "step"));
  mark_recomputed(plan.segments, options.plan.recompute);
  plan.update = options.update;
  plan.loaders = loaders_on(nodes, places, ranks);
  plan.cpus = options.plan.cpus;
  for (const std::vector<std::size_t>& rank : ranks) {
    plan.nodes.push_back({nodes[places[rank.front()].node].name, {}});
    for (const std::size_t p : rank)
      plan.nodes.back().groups.push_back(
          group_at(places[p], shares[p], places.size() == 1, graph, recipe, options));
  }
  return plan;
}

// What the shares of a plan cost, by group.
struct ShareCosts {
  std::vector<TimedShare> shares;
  std::vector<double> bytes;   // of memory that the share needs
  std::vector<double> memory;  // bytes that the group has; 0: not known
};

ShareCosts share_costs(const Plan& plan, sim::PreparedFleet fleet) {
  fleet.follow(plan);
  ShareCosts found;
  const std::vector<double> seconds = seconds_to_gradients(plan, fleet);
  for (const DeviceGroup* group : groups_of(plan))
    found.shares.push_back({share_of(*group), Seconds(seconds[found.shares.size()])});
  std::map<int, std::vector<sim::PreparedFleet::Memory>> by_kind;  // of node
  for (const sim::Rank& rank : fleet.fleet().ranks) {
    const auto [known, fresh] = by_kind.try_emplace(rank.kind);
    if (fresh) known->second = fleet.memory(rank.kind);
    for (const sim::PreparedFleet::Memory& group : known->second) {
      found.bytes.push_back(static_cast<double>(group.bytes));
      found.memory.push_back(static_cast<double>(group.room));
    }
  }
  return found;
}

std::vector<Participant> participants_of(const ShareCosts& earlier, const ShareCosts& latest) {
  std::vector<Participant> participants;
  for (std::size_t g = 0; g < latest.shares.size(); ++g)
    participants.push_back(linear_through(earlier.shares[g], latest.shares[g]));
  return participants;
}

// Limits each group to the samples that its memory holds: bytes grow evenly with samples. A batch
// that does not fit at all is not limited: require_memory tells which group lacks how much.
std::vector<Participant> within_memory(std::vector<Participant> participants,
                                       const ShareCosts& earlier, const ShareCosts& latest,
                                       std::int64_t batch) {
  std::vector<Participant> limited = participants;
  double room = 0;
  for (std::size_t g = 0; g < limited.size(); ++g) {
    const auto samples = static_cast<double>(latest.shares[g].samples);
    const double more = samples - static_cast<double>(earlier.shares[g].samples);
    const double per_sample =
        more == 0 ? latest.bytes[g] / samples : (latest.bytes[g] - earlier.bytes[g]) / more;
    double most = static_cast<double>(batch);
    if (latest.memory[g] > 0 && per_sample > 0)
      most = std::min(most, samples + (latest.memory[g] - latest.bytes[g]) / per_sample);
    if (!(most >= 1)) return participants;
    limited[g].most = static_cast<std::int64_t>(most);
    room += std::floor(most);
  }
  return room >= static_cast<double>(batch) ? limited : participants;
}

// Shares of places, and how fast each turned out to be.
struct Shared {
  std::vector<PlacedDevice> places;  // without those that get no sample
  std::vector<std::int64_t> shares;
  std::vector<double> speeds;  // samples a second before gradients meet; empty: not asked for
  Plan plan;
};

class NodePlanner {
 public:
  NodePlanner(const Graph& graph, const Recipe& recipe, const Platform& platform,
              const sim::Profiles& profiles, const NodeOptions& options)
      : graph_(graph),
        recipe_(recipe),
        platform_(platform),
        profiles_(profiles),
        options_(options),
        nodes_(chosen_nodes(platform, options.nodes)) {}

  NodePlan run() {
    const bool open = !options_.devices && options_.shares == "speed" && options_.ranks == 0;
    const std::vector<PlacedDevice> all = places(options_.devices.value_or(Devices::best));
    Shared found = with_known_teams(all, shared(all));
    Reasons reasons;
    if (open) found = with_cores(std::move(found), reasons);
    return {found.plan, roles(found, reasons)};
  }

  std::vector<PlacedDevice> places(Devices devices) const {
    std::vector<PlacedDevice> found = places_on(nodes_, devices);
    if (found.empty())
      throw InputError("--devices: the nodes of platform '" + platform_.name + "' have no " +
                       (devices == Devices::cuda ? "GPU" : "cores"));
    if (options_.ranks > std::ssize(found))
      throw InputError("--ranks " + std::to_string(options_.ranks) + ": platform '" +
                       platform_.name + "' has room for " + std::to_string(found.size()));
    if (options_.ranks > 0) found.resize(static_cast<std::size_t>(options_.ranks));
    return found;
  }

 private:
  using Reasons = std::map<const PlatformGroup*, std::string>;

  Plan with(const std::vector<std::int64_t>& shares,
            const std::vector<PlacedDevice>& places) const {
    return plan_with(shares, places, nodes_, graph_, recipe_, platform_, options_);
  }

  ShareCosts costs(const std::vector<std::int64_t>& shares,
                   const std::vector<PlacedDevice>& places) const {
    return share_costs(with(shares, places),
                       sim::PreparedFleet(graph_, recipe_, platform_, profiles_));
  }

  // `optional`: a place that may go without a sample.
  Shared shared(std::vector<PlacedDevice> places,
                const std::function<bool(const PlacedDevice&)>& optional = {}) const {
    const std::int64_t batch = recipe_.batch, granule = granule_of(graph_);
    if (granules_of(graph_, batch) < std::ssize(places))
      throw InputError("--batch " + std::to_string(batch) +
                       (granule > 1 ? " in groups of " + std::to_string(granule) : std::string()) +
                       " cannot be shared among " + std::to_string(places.size()) +
                       " groups: use more samples or fewer --nodes");
    if (options_.shares != "equal" && options_.shares != "speed") {
      std::vector<std::int64_t> given = samples_of(options_.shares);
      if (given.size() != places.size())
        throw InputError("--shares names " + std::to_string(given.size()) + " numbers for " +
                         std::to_string(places.size()) + " groups");
      Plan plan = with(given, places);
      return {std::move(places), std::move(given), {}, std::move(plan)};
    }
    std::vector<std::int64_t> shares = equal_chunks(batch, std::ssize(places), granule);
    if (options_.shares == "equal") {
      Plan plan = with(shares, places);
      return {std::move(places), std::move(shares), {}, std::move(plan)};
    }
    // The costs of shares of two sizes tell what a share costs beside its samples.
    const ShareCosts first = costs(shares, places);
    const ShareCosts second =
        costs(balanced_shares(participants_of(first, first), batch, granule), places);
    std::vector<Participant> participants =
        within_memory(participants_of(first, second), first, second, batch);
    for (std::size_t p = 0; optional && p < places.size(); ++p)
      if (optional(places[p])) participants[p].least = 0;
    shares = balanced_shares(participants, batch, granule);
    Shared found;
    for (std::size_t p = 0; p < places.size(); ++p) {
      if (shares[p] == 0) continue;
      found.places.push_back(places[p]);
      found.shares.push_back(shares[p]);
      found.speeds.push_back(static_cast<double>(shares[p]) /
                             participants[p].finish(shares[p]).count());
    }
    found.plan = with(found.shares, found.places);
    return found;
  }

  double guessed(const Plan& plan) const {
    sim::PreparedFleet fleet(graph_, recipe_, platform_, profiles_);
    fleet.follow(plan);
    return guessed_share(fleet);
  }

  // Cores work one by one where only that was measured.
  Shared with_known_teams(std::vector<PlacedDevice> places, Shared found) const {
    const auto teams = [](const DeviceGroup* group) { return group->team > 1; };
    if (profiles_.empty() || options_.plan.team ||
        std::ranges::none_of(groups_of(found.plan), teams) ||
        guessed(found.plan) <= 1 - known_enough)
      return found;
    for (PlacedDevice& place : places) place.team = place.gpu() ? 0 : 1;
    Shared apart = shared(std::move(places));
    return guessed(apart.plan) <= 1 - known_enough ? apart : found;
  }

  double step_seconds(const Shared& shared) const {
    sim::PreparedFleet fleet(graph_, recipe_, platform_, profiles_);
    fleet.follow(shared.plan);
    // Three steps, so that one overlaps with its neighbours; of a large fleet one tells enough.
    const bool large = fleet.fleet().ranks.size() > 64;
    return sim::simulate(fleet.fleet(), {.steps = large ? 1 : 3}).step_s.front();
  }

  // Whether cores beside GPUs are better off with a share of the batch.
  Shared with_cores(Shared alone, Reasons& reasons) const {
    std::set<std::size_t> gpu_nodes;
    for (const PlacedDevice& place : alone.places)
      if (place.gpu()) gpu_nodes.insert(place.node);
    const auto beside_gpu = [&](const PlacedDevice& place) {
      return !place.gpu() && gpu_nodes.contains(place.node);
    };
    std::vector<PlacedDevice> all = places(Devices::both);
    if (gpu_nodes.empty() || std::ranges::none_of(all, beside_gpu)) return alone;
    const auto say = [&](const std::string& why) {
      for (const PlacedDevice& place : all)
        if (beside_gpu(place))
          reasons[place.group] = std::to_string(place.group->count) + " cores " + why;
    };
    if (recipe_.precision == Precision::tf32) {
      say("do not compute in tf32: they load");
      return alone;
    }
    if (granules_of(graph_, recipe_.batch) < std::ssize(all)) {
      say("would leave a group without samples: they load");
      return alone;
    }
    Shared both = shared(all, beside_gpu);
    double gpus = 0, cores = 0;
    for (std::size_t p = 0; p < both.places.size(); ++p)
      (beside_gpu(both.places[p]) ? cores : gpus) += both.speeds[p];
    if (cores == 0) {
      say("would not be done with one sample when the GPUs are with all: they load");
      return alone;
    }
    const double before = step_seconds(alone), after = step_seconds(both);
    const double gain = cores / gpus;
    const double cost = std::max(0.0, after * (1 + gain) / before - 1);
    const bool worth = after < before;
    char text[120];
    std::snprintf(text, sizeof text, "%s %.1f%% and cost %.1f%% in meetings and copies: they %s",
                  worth ? "add" : "would add", 100 * gain, 100 * cost, worth ? "compute" : "load");
    say(text);
    return worth ? both : alone;
  }

  // By entry of the platform: nodes that are alike have one role.
  std::vector<GroupRole> roles(const Shared& shared, const Reasons& reasons) const {
    std::map<const PlatformGroup*, std::int64_t> samples;
    std::set<const PlatformNode*> computing, feeding;
    for (std::size_t p = 0; p < shared.places.size(); ++p) {
      const PlatformNode* node = nodes_[shared.places[p].node].node;
      samples[shared.places[p].group] += shared.shares[p];
      computing.insert(node);
      if (shared.places[p].gpu()) feeding.insert(node);
    }
    const std::string of = " of " + std::to_string(recipe_.batch) + " samples";
    std::vector<GroupRole> found;
    for (const PlatformNode& node : platform_.nodes)
      for (const PlatformGroup& group : node.groups) {
        const bool cpu = group.kind == DeviceKind::cpu;
        GroupRole role{node.name, group.name, Role::rest, ""};
        if (const auto mine = samples.find(&group); mine != samples.end()) {
          role.role = Role::compute;
          role.reason = std::to_string(mine->second) + of;
        } else if (cpu && options_.update == NodeUpdate::server_cpu &&
                   &node == nodes_[shared.places.front().node].node && feeding.contains(&node)) {
          role.role = Role::update;
          role.reason = "adds all gradients, as --update server:cpu asks for, and loads";
        } else if (cpu && feeding.contains(&node)) {
          role.role = Role::load;
          role.reason = "feeds the GPUs";
        } else {
          role.reason = !computing.contains(&node) ? "its node is not among those chosen"
                                                   : "not among the devices asked for";
        }
        if (const auto why = reasons.find(&group); why != reasons.end())
          role.reason = why->second + (role.role == Role::compute ? ", " + role.reason : "");
        found.push_back(std::move(role));
      }
    return found;
  }

  const Graph& graph_;
  const Recipe& recipe_;
  const Platform& platform_;
  const sim::Profiles& profiles_;
  const NodeOptions& options_;
  std::vector<NamedNode> nodes_;
};

}  // namespace

NodePlan planned_over_nodes(const Graph& graph, const Recipe& recipe, const Platform& platform,
                            const sim::Profiles& profiles, const NodeOptions& options) {
  return NodePlanner(graph, recipe, platform, profiles, options).run();
}

Plan plan_over_nodes(const Graph& graph, const Recipe& recipe, const Platform& platform,
                     const sim::Profiles& profiles, const NodeOptions& options) {
  return planned_over_nodes(graph, recipe, platform, profiles, options).plan;
}

std::int64_t groups_at_most(const Platform& platform, const NodeOptions& options) {
  const std::vector<PlacedDevice> found =
      places_on(chosen_nodes(platform, options.nodes), options.devices.value_or(Devices::best));
  return options.ranks > 0 ? std::min<std::int64_t>(options.ranks, std::ssize(found))
                           : std::ssize(found);
}

Plan plan_for_devices(const Graph& graph, const Recipe& recipe, const Platform& platform,
                      const std::vector<DeviceShare>& devices, const NodeOptions& options) {
  std::map<std::string, const PlatformNode*> by_name;
  for (const NamedNode& each : all_nodes(platform)) by_name[each.name] = each.node;
  std::vector<NamedNode> nodes;
  std::vector<PlacedDevice> places;
  std::vector<std::int64_t> shares;
  std::map<std::pair<std::string, std::string>, std::string> states;  // by node and group
  for (const DeviceShare& device : devices) {
    const auto found = by_name.find(device.node);
    const PlatformGroup* group =
        found == by_name.end() ? nullptr : group_named(*found->second, device.group);
    if (!group)
      throw InputError("platform '" + platform.name + "' has no device '" + device.node + "/" +
                       device.group + "'");
    if (nodes.empty() || nodes.back().name != device.node)
      nodes.push_back({device.node, found->second});
    places.push_back({nodes.size() - 1, group, device.group, device.team});
    shares.push_back(device.samples);
    states[{device.node, device.group}] = device.state;
  }
  Plan plan = plan_with(shares, places, nodes, graph, recipe, platform, options);
  for (PlanNode& node : plan.nodes)
    for (DeviceGroup& group : node.groups) group.state = states.at({node.name, group.name});
  return plan;
}

}  // namespace regatta::app
