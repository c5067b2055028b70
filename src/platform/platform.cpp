#include "platform/platform.h"

#include <array>

#include "base/error.h"
#include "base/files.h"

namespace regatta {
namespace {

constexpr std::array<std::string_view, 6> topology_names{"star",     "ring",      "tree",
                                                         "fat_tree", "wide_area", "routes"};

Json to_json(const Watts& watts, bool measured) {
  Json json{{"idle", watts.idle}, {"active", watts.active}};
  if (measured) json["measured"] = true;
  return json;
}

Json to_json(const LinkSpeed& link) {
  return {{"bandwidth", link.bandwidth}, {"latency", link.latency}};
}

void add_link(Json& json, const LinkSpeed& link) {
  json["bandwidth"] = link.bandwidth;
  json["latency"] = link.latency;
}

Json to_json(const CostSource& costs) {
  Json json = Json::object();
  if (!costs.profile.empty()) json["profile"] = costs.profile;
  if (costs.flops > 0) json["flops"] = costs.flops;
  if (costs.memory_bandwidth > 0) json["memory_bandwidth"] = costs.memory_bandwidth;
  if (costs.uncertainty != CostSource{}.uncertainty) json["uncertainty"] = costs.uncertainty;
  return json;
}

Json to_json(const PlatformGroup& group) {
  Json json{{"name", group.name},
            {"kind", device_kind_name(group.kind)},
            {"count", group.count},
            {"memory_bytes", group.memory},
            {"watts", to_json(group.watts, group.watts_measured)},
            {"costs", to_json(group.costs)}};
  for (const PowerState& state : group.states)
    json["states"].push_back(
        {{"name", state.name}, {"speed", state.speed}, {"watts", to_json(state.watts, false)}});
  if (const auto& slow = group.slow_cores)
    json["slow_cores"] = {
        {"count", slow->count}, {"slow", slow->slow}, {"active_watts", slow->active_watts}};
  if (group.bus) {
    json["bus"] = {{"to_device", group.bus->to_device},
                   {"from_device", group.bus->from_device},
                   {"latency", group.bus->latency}};
    if (!group.bus->hub.empty()) json["bus"]["hub"] = group.bus->hub;
  }
  return json;
}

Json to_json(const Price& price) {
  if (price.rented()) {
    Json json{{"per_hour", price.per_hour}};
    if (price.minimum_hours > 0) json["minimum_hours"] = price.minimum_hours;
    return json;
  }
  return {{"purchase", price.purchase}, {"lifetime_hours", price.lifetime_hours}};
}

Json to_json(const PlatformNode& node) {
  Json json{{"name", node.name}};
  if (node.count > 1) json["count"] = node.count;
  json["groups"] = Json::array();
  for (const PlatformGroup& group : node.groups) json["groups"].push_back(to_json(group));
  for (const Hub& hub : node.hubs) {
    json["hubs"].push_back({{"name", hub.name}});
    add_link(json["hubs"].back(), hub.link);
  }
  if (!node.attached.empty()) json["switch"] = node.attached;
  if (node.link) json["link"] = to_json(*node.link);
  if (node.unused_watts) json["unused_watts"] = *node.unused_watts;
  if (node.price) json["price"] = to_json(*node.price);
  return json;
}

Json to_json(const NetworkSpec& network) {
  Json json{{"topology", topology_name(network.topology)}};
  if (network.link.bandwidth > 0) add_link(json, network.link);
  if (network.backbone) json["backbone"] = to_json(*network.backbone);
  for (const Switch& each : network.switches) {
    Json entry{{"name", each.name}};
    if (each.count > 1) entry["count"] = each.count;
    if (!each.parent.empty()) {
      entry["parent"] = each.parent;
      add_link(entry, each.link);
    }
    if (each.uplinks > 1) entry["uplinks"] = each.uplinks;
    json["switches"].push_back(entry);
  }
  for (const SiteLink& each : network.sites) {
    Json entry{{"between", {each.first, each.second}}};
    add_link(entry, each.link);
    json["sites"].push_back(entry);
  }
  for (const NamedLink& each : network.links) {
    Json entry{{"name", each.name}};
    add_link(entry, each.link);
    json["links"].push_back(entry);
  }
  for (const Route& each : network.routes)
    json["routes"].push_back({{"between", {each.first, each.second}}, {"links", each.links}});
  return json;
}

}  // namespace

std::string_view topology_name(Topology topology) {
  return topology_names[static_cast<std::size_t>(topology)];
}

Topology topology_named(std::string_view name) {
  for (std::size_t i = 0; i < topology_names.size(); ++i)
    if (topology_names[i] == name) return static_cast<Topology>(i);
  const std::vector<std::string> known(topology_names.begin(), topology_names.end());
  throw InputError("topology '" + std::string(name) + "' is unknown" + did_you_mean(name, known) +
                   ": use star, ring, tree, fat_tree, wide_area or routes");
}

const PowerState& state_named(const PlatformGroup& group, const std::string& name) {
  std::string known;
  for (const PowerState& state : group.states) {
    if (state.name == name) return state;
    known += (known.empty() ? "" : ", ") + state.name;
  }
  throw InputError("group '" + group.name + "' has no power state '" + name + "'; it has " +
                   (known.empty() ? "none" : known));
}

double PlatformGroup::fast_cores() const {
  return slow_cores ? count - slow_cores->count + slow_cores->count / slow_cores->slow : count;
}

double PlatformGroup::busy_watts() const {
  const int slow = slow_cores ? slow_cores->count : 0;
  return (watts.active - watts.idle) * (count - slow) +
         (slow > 0 ? (slow_cores->active_watts - watts.idle) * slow : 0);
}

double PlatformNode::idle_watts() const {
  double watts = 0;
  for (const PlatformGroup& group : groups) watts += group.watts.idle * group.count;
  return watts;
}

std::int64_t Platform::node_count() const {
  std::int64_t count = 0;
  for (const PlatformNode& node : nodes) count += node.count;
  return count;
}

Json Platform::to_json() const {
  Json json{{"regatta_platform", platform_version}, {"name", name}};
  if (!remark.empty()) json["remark"] = remark;
  if (energy_price > 0) json["energy_price"] = energy_price;
  json["nodes"] = Json::array();
  for (const PlatformNode& node : nodes) json["nodes"].push_back(regatta::to_json(node));
  if (node_count() > 1) json["network"] = regatta::to_json(network);
  return json;
}

std::string Platform::fingerprint() const { return sha256_hex(to_json().dump()).substr(0, 16); }

}  // namespace regatta
