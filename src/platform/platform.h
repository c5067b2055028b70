// A platform is data: nodes with their device groups, what joins them, and what they draw. It is
// read from JSON (schemas/platform.schema.json) and says nothing of any network or plan.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "platform/device_kind.h"

namespace regatta {

inline constexpr int platform_version = 1;

// The power that one core or one GPU draws.
struct Watts {
  double idle = 0, active = 0;
  bool operator==(const Watts&) const = default;
};

// A way to run slower and draw less.
struct PowerState {
  std::string name;
  double speed = 1;  // beside the speed that costs speak of
  Watts watts;
  bool operator==(const PowerState&) const = default;
};

// Where the costs of tasks come from: a measured profile as it is, or scaled from one by FLOP/s and
// bandwidth, or these alone. The latter two are estimates.
struct CostSource {
  std::string profile = {};     // a machine whose profile was measured; empty: none
  double flops = 0;             // a second, sustained, of one core or GPU; 0: the profile's own
  double memory_bandwidth = 0;  // bytes a second, of the whole group; 0: never in the way
  double uncertainty = 2;       // an estimate's interval: from seconds / this to seconds * this

  bool estimate() const { return profile.empty() || flops > 0; }
  bool operator==(const CostSource&) const = default;
};

struct LinkSpeed {
  double bandwidth = 0;  // bytes a second, each way
  double latency = 0;    // seconds
  bool operator==(const LinkSpeed&) const = default;
};

// Between a GPU's memory and its node's.
struct Bus {
  double to_device = 0, from_device = 0;  // bytes a second
  double latency = 0;
  std::string hub;  // of the node; empty: straight to the node's memory
  bool operator==(const Bus&) const = default;
};

// The last cores of a group, where they are slower than the others.
struct SlowCores {
  int count = 0;
  double slow = 1;          // times as long as the others they take
  double active_watts = 0;  // of one
  bool operator==(const SlowCores&) const = default;
};

// What shares memory and is fed as one: a node's cores. Of GPUs, each has a memory of its own.
struct PlatformGroup {
  std::string name;
  DeviceKind kind = DeviceKind::cpu;
  int count = 1;            // cores or GPUs
  std::int64_t memory = 0;  // bytes: of the node for cores, of each GPU
  Watts watts = {};
  bool watts_measured = false;
  std::vector<PowerState> states = {};
  std::optional<SlowCores> slow_cores = {};
  CostSource costs = {};
  std::optional<Bus> bus = {};  // of GPUs

  // All cores together: how many of the fast ones do as much, and watts beyond idle at work.
  double fast_cores() const;
  double busy_watts() const;
  bool operator==(const PlatformGroup&) const = default;
};

// Throws InputError that tells which states there are.
const PowerState& state_named(const PlatformGroup& group, const std::string& name);

// A switch inside a node: its GPUs reach each other below it and share its way to memory.
struct Hub {
  std::string name;
  LinkSpeed link;
  bool operator==(const Hub&) const = default;
};

// What a node costs in money while it takes part. Of a rented one, energy is in the rent.
struct Price {
  double per_hour = 0;       // rent
  double minimum_hours = 0;  // that are paid for however short the use is
  double purchase = 0;       // of an owned node, spread over its lifetime
  double lifetime_hours = 0;

  bool rented() const { return per_hour > 0; }
  bool operator==(const Price&) const = default;
};

struct PlatformNode {
  std::string name;
  int count = 1;  // so many alike: NAME-0, NAME-1, ...
  std::vector<PlatformGroup> groups;
  std::vector<Hub> hubs;
  std::string attached;           // to this switch; dealt out in blocks if it has a count
  std::optional<LinkSpeed> link;  // to it; default: the network's
  // Drawn while a plan leaves it out; default: what its idle devices draw. 0: it is switched off.
  std::optional<double> unused_watts = {};
  std::optional<Price> price = {};
  bool operator==(const PlatformNode&) const = default;

  double idle_watts() const;  // of all its devices
  double watts_unused() const { return unused_watts.value_or(idle_watts()); }
};

enum class Topology {
  star,       // every node has a link to one switch
  ring,       // every node has a link to the next one; messages go the shorter way round
  tree,       // switches with parents
  fat_tree,   // switches with several uplinks; a message takes one by where it goes
  wide_area,  // several such trees, sites, with links between them
  routes,     // every pair's links are listed
};
std::string_view topology_name(Topology topology);
Topology topology_named(std::string_view name);  // throws InputError

struct Switch {
  std::string name;
  int count = 1;            // so many alike, dealt out among the parents
  std::string parent = {};  // empty: a root
  LinkSpeed link = {};      // to the parent
  int uplinks = 1;
  bool operator==(const Switch&) const = default;
};

struct SiteLink {
  std::string first, second;  // roots
  LinkSpeed link;
  bool operator==(const SiteLink&) const = default;
};

struct NamedLink {
  std::string name;
  LinkSpeed link;
  bool operator==(const NamedLink&) const = default;
};

// Both ways over the same links.
struct Route {
  std::string first, second;  // nodes
  std::vector<std::string> links;
  bool operator==(const Route&) const = default;
};

struct NetworkSpec {
  Topology topology = Topology::star;
  LinkSpeed link;                     // of a node, where it does not say otherwise
  std::optional<LinkSpeed> backbone;  // of a star: what all traffic shares
  std::vector<Switch> switches;       // of tree, fat_tree, wide_area
  std::vector<SiteLink> sites;        // of wide_area
  std::vector<NamedLink> links;       // of routes
  std::vector<Route> routes;
  bool operator==(const NetworkSpec&) const = default;
};

struct Platform {
  std::string name;
  std::string remark;  // where its numbers come from
  std::vector<PlatformNode> nodes;
  NetworkSpec network;      // of no concern to a single node
  double energy_price = 0;  // money for a kilowatt-hour, of nodes that are not rented

  std::int64_t node_count() const;
  Json to_json() const;
  std::string fingerprint() const;  // of to_json()
  bool operator==(const Platform&) const = default;
};

// Throws InputError that names `who` and every fault with its place.
Platform platform_from_json(const Json& json, const std::string& who = "platform");
// A JSON file, or SimGrid's XML if its name ends in .xml.
Platform read_platform(const std::filesystem::path& file);

}  // namespace regatta
