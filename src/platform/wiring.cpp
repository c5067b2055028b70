#include "platform/wiring.h"

#include <algorithm>
#include <deque>

namespace regatta {

Wiring::Wiring(const Platform& platform) : platform_(platform) {
  for (std::size_t entry = 0; entry < platform_.nodes.size(); ++entry)
    for (int copy = 0; copy < platform_.nodes[entry].count; ++copy)
      places_.push_back({static_cast<int>(entry), copy});
  for (int i = 0; i < nodes(); ++i) insides_.push_back(inside_of(node(i), node_name(i)));
  if (nodes() < 2) return;
  switch (platform_.network.topology) {
    case Topology::star:
      join_star();
      break;
    case Topology::ring:
      join_ring();
      break;
    case Topology::tree:
    case Topology::fat_tree:
    case Topology::wide_area:
      join_switches();
      break;
    case Topology::routes:
      join_routes();
      break;
  }
}

std::string Wiring::node_name(int number) const {
  const NodeCopy at = place(number);
  const PlatformNode& entry = node(number);
  return entry.count == 1 ? entry.name : entry.name + "-" + std::to_string(at.copy);
}

const PlatformNode& Wiring::node(int number) const {
  return platform_.nodes[static_cast<std::size_t>(place(number).entry)];
}

std::vector<Wiring::SwitchCopy> Wiring::switches() const {
  std::vector<SwitchCopy> places;
  for (const Switch& each : platform_.network.switches)
    for (int copy = 0; copy < each.count; ++copy) {
      const Joint& joint = joints_[places.size()];
      places.push_back(
          {joint.name, joint.parent < 0 ? "" : joints_[static_cast<std::size_t>(joint.parent)].name,
           &each});
    }
  return places;
}

std::vector<std::string> Wiring::switches_above(int node) const {
  std::vector<std::string> above;
  if (attached_.empty()) return above;
  for (int at = neighbourhood(node); at >= 0; at = joints_[static_cast<std::size_t>(at)].parent)
    above.push_back(joints_[static_cast<std::size_t>(at)].name);
  std::ranges::reverse(above);
  return above;
}

int Wiring::wire(const std::string& from, const std::string& to, double bandwidth, double latency) {
  wires_.push_back({from, to, bandwidth, latency});
  return static_cast<int>(wires_.size()) - 1;
}

Wiring::Duplex Wiring::duplex(const std::string& below, const std::string& above,
                              const LinkSpeed& link) {
  return {wire(below, above, link.bandwidth, link.latency),
          wire(above, below, link.bandwidth, link.latency)};
}

Wiring::Inside Wiring::inside_of(const PlatformNode& node, const std::string& name) {
  Inside inside;
  for (const Hub& hub : node.hubs)
    inside.hubs.push_back(duplex(name + "/" + hub.name, name, hub.link));
  for (const PlatformGroup& group : node.groups) {
    if (!group.bus) continue;
    const auto hub = std::ranges::find(node.hubs, group.bus->hub, &Hub::name);
    for (int unit = 0; unit < group.count; ++unit) {
      const std::string who = name + "/" + group.name + " " + std::to_string(unit);
      const std::string above = hub == node.hubs.end() ? name : name + "/" + hub->name;
      Device device;
      device.to = wire(above, who, group.bus->to_device, group.bus->latency);
      device.from = wire(who, above, group.bus->from_device, group.bus->latency);
      if (hub != node.hubs.end()) device.hub = static_cast<int>(hub - node.hubs.begin());
      inside.gpus.push_back(device);
    }
  }
  return inside;
}

// --- joining nodes -------------------------------------------------------------------------------

void Wiring::join_star() {
  for (int i = 0; i < nodes(); ++i)
    own_.push_back(duplex(node_name(i), "switch", node(i).link.value_or(platform_.network.link)));
  // All traffic shares it, whichever way it goes.
  if (const auto& backbone = platform_.network.backbone)
    backbone_.up = wire("backbone", "", backbone->bandwidth, backbone->latency);
}

void Wiring::join_ring() {
  for (int i = 0; i < nodes(); ++i)
    own_.push_back(duplex(node_name(i), node_name((i + 1) % nodes()),
                          node(i).link.value_or(platform_.network.link)));
}

void Wiring::join_switches() {
  const NetworkSpec& network = platform_.network;
  std::map<std::string, std::pair<int, int>> copies;  // by name: the first joint and how many
  for (const Switch& each : network.switches) {
    copies[each.name] = {static_cast<int>(joints_.size()), each.count};
    for (int copy = 0; copy < each.count; ++copy)
      joints_.push_back({each.name + (each.count > 1 ? "-" + std::to_string(copy) : ""), -1, {}});
  }
  // In blocks, so that neighbours have the same parent.
  const auto dealt = [](std::pair<int, int> among, std::int64_t index, std::int64_t of) {
    return among.first + static_cast<int>(index * among.second / of);
  };
  for (const Switch& each : network.switches) {
    if (each.parent.empty()) continue;
    for (int copy = 0; copy < each.count; ++copy) {
      Joint& joint = joints_[static_cast<std::size_t>(copies[each.name].first + copy)];
      joint.parent = dealt(copies[each.parent], copy, each.count);
      for (int uplink = 0; uplink < each.uplinks; ++uplink)
        joint.uplinks.push_back(
            duplex(joint.name + (each.uplinks > 1 ? "." + std::to_string(uplink) : ""),
                   joints_[static_cast<std::size_t>(joint.parent)].name, each.link));
    }
  }
  std::map<std::string, std::int64_t> attached, seen;  // nodes by switch
  for (const PlatformNode& each : platform_.nodes) attached[each.attached] += each.count;
  for (int i = 0; i < nodes(); ++i) {
    const std::string& name = node(i).attached;
    attached_.push_back(dealt(copies[name], seen[name]++, attached[name]));
    own_.push_back(duplex(node_name(i), joints_[static_cast<std::size_t>(attached_.back())].name,
                          node(i).link.value_or(network.link)));
  }
  for (const SiteLink& each : network.sites) {
    const Duplex link = duplex(each.first, each.second, each.link);
    const int first = copies[each.first].first, second = copies[each.second].first;
    root_links_[first].push_back({second, link.up});
    root_links_[second].push_back({first, link.down});
  }
}

void Wiring::join_routes() {
  std::map<std::string, Duplex> links;
  for (const NamedLink& each : platform_.network.links)
    links[each.name] = {wire(each.name + " there", "", each.link.bandwidth, each.link.latency),
                        wire(each.name + " back", "", each.link.bandwidth, each.link.latency)};
  std::map<std::string, int> numbers;
  for (int i = 0; i < nodes(); ++i) numbers[node_name(i)] = i;
  for (const Route& each : platform_.network.routes) {
    const int first = numbers[each.first], second = numbers[each.second];
    for (const std::string& name : each.links) {
      listed_[{first, second}].push_back(links[name].up);
      listed_[{second, first}].push_back(links[name].down);
    }
    std::ranges::reverse(listed_[{second, first}]);
  }
}

// --- routes --------------------------------------------------------------------------------------

std::vector<int> Wiring::route(Endpoint from, Endpoint to) const {
  std::vector<int> way;
  if (from == to) return way;
  const Inside& here = insides_[static_cast<std::size_t>(from.node)];
  const Inside& there = insides_[static_cast<std::size_t>(to.node)];
  const Device* source = from.gpu < 0 ? nullptr : &here.gpus[static_cast<std::size_t>(from.gpu)];
  const Device* target = to.gpu < 0 ? nullptr : &there.gpus[static_cast<std::size_t>(to.gpu)];
  // GPUs below one hub reach each other without leaving it.
  const bool below = from.node == to.node && source && target && source->hub == target->hub;
  if (source) {
    way.push_back(source->from);
    if (source->hub >= 0 && !below)
      way.push_back(here.hubs[static_cast<std::size_t>(source->hub)].up);
  }
  if (from.node != to.node) {
    const std::vector<int> outside = between_nodes(from.node, to.node);
    way.insert(way.end(), outside.begin(), outside.end());
  }
  if (target) {
    if (target->hub >= 0 && !below)
      way.push_back(there.hubs[static_cast<std::size_t>(target->hub)].down);
    way.push_back(target->to);
  }
  return way;
}

double Wiring::latency(const std::vector<int>& route) const {
  double total = 0;
  for (const int each : route) total += wires_[static_cast<std::size_t>(each)].latency;
  return total;
}

std::vector<int> Wiring::between_nodes(int from, int to) const {
  switch (platform_.network.topology) {
    case Topology::ring:
      return by_ring(from, to);
    case Topology::routes:
      return listed_.at({from, to});
    case Topology::star: {
      std::vector<int> way{own_[static_cast<std::size_t>(from)].up};
      if (backbone_.up >= 0) way.push_back(backbone_.up);
      way.push_back(own_[static_cast<std::size_t>(to)].down);
      return way;
    }
    default:
      return by_switches(from, to);
  }
}

std::vector<int> Wiring::by_ring(int from, int to) const {
  const int count = nodes();
  const int onward = (to - from + count) % count;
  std::vector<int> way;
  if (onward <= count - onward) {
    for (int at = from; at != to; at = (at + 1) % count)
      way.push_back(own_[static_cast<std::size_t>(at)].up);
  } else {
    for (int at = from; at != to;) {
      at = (at + count - 1) % count;
      way.push_back(own_[static_cast<std::size_t>(at)].down);
    }
  }
  return way;
}

std::vector<int> Wiring::by_switches(int from, int to) const {
  const auto ancestors = [&](int joint) {
    std::vector<int> line;
    for (; joint >= 0; joint = joints_[static_cast<std::size_t>(joint)].parent)
      line.push_back(joint);
    return line;
  };
  std::vector<int> rising = ancestors(attached_[static_cast<std::size_t>(from)]);
  std::vector<int> falling = ancestors(attached_[static_cast<std::size_t>(to)]);
  const bool one_tree = rising.back() == falling.back();
  const int from_root = rising.back(), to_root = falling.back();
  // What both have in common is not climbed, and of a joint only those below the turn have a way
  // up.
  while (!rising.empty() && !falling.empty() && rising.back() == falling.back()) {
    rising.pop_back();
    falling.pop_back();
  }
  if (!one_tree) {
    rising.pop_back();
    falling.pop_back();
  }
  // Among parallel uplinks, the destination decides which one is taken: all messages to a node
  // meet early, and different nodes use different links.
  const auto uplink = [&](int joint) -> const Duplex& {
    const std::vector<Duplex>& uplinks = joints_[static_cast<std::size_t>(joint)].uplinks;
    return uplinks[static_cast<std::size_t>(to) % uplinks.size()];
  };
  std::vector<int> way{own_[static_cast<std::size_t>(from)].up};
  for (const int joint : rising) way.push_back(uplink(joint).up);
  if (!one_tree)
    for (const int each : between_roots(from_root, to_root)) way.push_back(each);
  for (auto joint = falling.rbegin(); joint != falling.rend(); ++joint)
    way.push_back(uplink(*joint).down);
  way.push_back(own_[static_cast<std::size_t>(to)].down);
  return way;
}

// The fewest links; between equals, those that stand first in the file.
std::vector<int> Wiring::between_roots(int from, int to) const {
  std::map<int, RootLink> reached;  // by root: from where, over which wire
  std::deque<int> next{from};
  while (!next.empty() && !reached.contains(to)) {
    const int at = next.front();
    next.pop_front();
    for (const RootLink& link : root_links_.at(at))
      if (link.other != from && reached.try_emplace(link.other, RootLink{at, link.wire}).second)
        next.push_back(link.other);
  }
  std::vector<int> way;
  for (int at = to; at != from; at = reached.at(at).other) way.push_back(reached.at(at).wire);
  std::ranges::reverse(way);
  return way;
}

}  // namespace regatta
