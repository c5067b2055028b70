#include "sim/fleet_map.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "tasks/split_updates.h"

namespace regatta::sim {

FleetMap::FleetMap(const Fleet& fleet)
    : fleet_(fleet), wiring_(fleet.platform), several_(fleet.ranks.size() > 1) {
  lists_.reserve(fleet.kinds.size());  // works keep their addresses
  for (const RankKind& kind : fleet.kinds) {
    lists_.push_back(several_ ? split_updates(*kind.list) : *kind.list);
    works_.emplace_back(*kind.blueprint, lists_.back(), *kind.costs,
                        several_ ? split_places(*kind.blueprint, *kind.list, lists_.back())
                                 : fixed_places(*kind.blueprint, *kind.list),
                        several_);
  }
  require_same_buckets();
  // All devices of a node draw power, also those that have nothing to do.
  std::set<int> nodes;
  // Watts that differ from the group's own: in power states, and where workers have powers.
  std::map<std::tuple<int, int, int>, Watts> states;
  for (const Rank& rank : fleet.ranks) {
    nodes.insert(rank.node);
    nodes.insert(rank.nodes.begin(), rank.nodes.end());
    const auto groups = groups_of(fleet.kinds[static_cast<std::size_t>(rank.kind)].blueprint->plan);
    for (std::size_t g = 0; g < std::min(groups.size(), rank.devices.size()); ++g) {
      const bool own_watts = !groups[g]->powers.empty();
      if (groups[g]->state.empty() && !own_watts) continue;
      const int node = rank.node_of(g);
      const Device device = rank.devices[g];
      const PlatformGroup& group =
          wiring_.node(node).groups[static_cast<std::size_t>(device.group)];
      states[{node, device.group, device.unit}] = own_watts
                                                      ? Watts{group.watts.idle, group.watts.idle}
                                                      : state_named(group, groups[g]->state).watts;
    }
  }
  for (int node = 0; node < wiring_.nodes(); ++node)
    if (!nodes.contains(node)) unused_watts_ += wiring_.node(node).watts_unused();
  for (const int node : nodes) {
    const std::vector<PlatformGroup>& groups = wiring_.node(node).groups;
    for (int g = 0; g < static_cast<int>(groups.size()); ++g) {
      const PlatformGroup& group = groups[static_cast<std::size_t>(g)];
      const bool cpu = group.kind == DeviceKind::cpu;
      for (int unit = 0; unit < (cpu ? 1 : group.count); ++unit) {
        numbers_[{node, g, unit}] = static_cast<int>(hosts_.size());
        const auto state = states.find({node, g, unit});
        const Watts watts = state == states.end() ? group.watts : state->second;
        hosts_.push_back({cpu ? group.count : 1, watts.idle, watts.active});
        host_names_.push_back({node, group.name});
      }
    }
  }
}

// What is exchanged must be cut alike everywhere.
void FleetMap::require_same_buckets() const {
  const auto bytes_of = [](const NodeWork& work) {
    std::vector<std::size_t> bytes;
    for (const Bucket& bucket : work.blueprint().buckets) bytes.push_back(bucket.bytes);
    return bytes;
  };
  for (const NodeWork& each : works_) {
    if (several_ && each.meetings() != works_.front().meetings())
      throw Error("internal: ranks of one plan meet at different points");
    if (several_ && bytes_of(each) != bytes_of(works_.front()))
      throw InputError(
          "the nodes of the plan cut their gradients differently: give all of them the same "
          "segments and bucket_bytes");
  }
}

int FleetMap::host_of(int node, Device device) const {
  const auto found = numbers_.find({node, device.group, device.unit});
  if (found == numbers_.end())
    throw Error("internal: node " + wiring_.node_name(node) + " has no such device");
  return found->second;
}

// Memory 0 is the node's own, the others are its GPUs', or the stages' of a pipeline.
Endpoint FleetMap::memory_of(const Rank& rank, int memory) const {
  if (memory == 0) return {rank.node, -1};
  const auto group = static_cast<std::size_t>(memory) - 1;
  const Device device = rank.devices[group];
  const int node = rank.node_of(group);
  int gpu = device.unit;
  const std::vector<PlatformGroup>& groups = wiring_.node(node).groups;
  if (groups[static_cast<std::size_t>(device.group)].kind == DeviceKind::cpu) return {node, -1};
  for (int g = 0; g < device.group; ++g)
    if (groups[static_cast<std::size_t>(g)].kind == DeviceKind::cuda)
      gpu += groups[static_cast<std::size_t>(g)].count;
  return {node, gpu};
}

std::vector<Endpoint> FleetMap::endpoints() const {
  std::vector<Endpoint> ends;
  for (const Rank& rank : fleet_.ranks) {
    const NodeWork& each = work(rank);
    ends.push_back(memory_of(rank, each.pools()[each.blueprint().owner.value].memory));
  }
  return ends;
}

RankHosts FleetMap::hosts_of_rank(const Rank& rank, std::vector<std::vector<int>>& routes) const {
  RankHosts hosts;
  const NodeWork& each = work(rank);
  const std::vector<Pool>& pools = each.pools();
  for (std::size_t p = 0; p < pools.size(); ++p) {
    if (p < rank.devices.size()) {
      hosts.hosts.push_back(host_of(rank.node_of(p), rank.devices[p]));
      continue;
    }
    // Loaders sit on the node's cores.
    const std::vector<PlatformGroup>& groups = wiring_.node(rank.node).groups;
    const auto cpu = std::ranges::find(groups, DeviceKind::cpu, &PlatformGroup::kind);
    if (cpu == groups.end())
      throw InputError("node '" + wiring_.node_name(rank.node) +
                       "' has no cores: nobody could load samples there");
    hosts.hosts.push_back(host_of(rank.node, {static_cast<int>(cpu - groups.begin()), 0}));
  }
  if (!each.several_memories()) return hosts;
  for (int from = 0; from < each.memories(); ++from) {
    hosts.routes.emplace_back();
    hosts.latencies.emplace_back();
    for (int to = 0; to < each.memories(); ++to) {
      const auto known = [&](int memory) {
        return memory == 0 || pools[static_cast<std::size_t>(memory) - 1].memory == memory;
      };
      std::vector<int> way;
      if (known(from) && known(to)) way = wiring_.route(memory_of(rank, from), memory_of(rank, to));
      hosts.latencies.back().push_back(wiring_.latency(way));
      hosts.routes.back().push_back(way.empty() ? -1 : static_cast<int>(routes.size()));
      if (!way.empty()) routes.push_back(std::move(way));
    }
  }
  return hosts;
}

}  // namespace regatta::sim
