#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/json_reader.h"
#include "platform/platform.h"
#include "platform/simgrid_xml.h"

namespace regatta {
namespace {

constexpr std::int64_t most_nodes = 1'000'000;
constexpr double most_money = 1e12, most_hours = 1e6;
constexpr double most_bandwidth = 1e15, most_latency = 3600, most_watts = 1e6, most_flops = 1e18;
// Less than a byte a second is no speed at all, and zero would never arrive.
constexpr double least_bandwidth = 1;

using Faults = std::vector<std::string>;

LinkSpeed link_in(ObjectReader& reader) {
  return {reader.number("bandwidth", least_bandwidth, most_bandwidth),
          reader.number("latency", 0, most_latency, 0)};
}

std::optional<LinkSpeed> link_at(ObjectReader& parent, const char* key, Faults& faults) {
  const Json* json = parent.object(key, false);
  if (!json) return std::nullopt;
  ObjectReader reader(*json, parent.place_of(key), faults);
  const LinkSpeed link = link_in(reader);
  reader.finish();
  return link;
}

Watts read_watts(ObjectReader& parent, Faults& faults, bool* measured = nullptr) {
  Watts watts;
  const Json* json = parent.object("watts");
  if (!json) return watts;
  ObjectReader reader(*json, parent.place_of("watts"), faults);
  const std::size_t before = faults.size();
  watts.idle = reader.number("idle", 0, most_watts);
  watts.active = reader.number("active", 0, most_watts);
  if (faults.size() == before && watts.active < watts.idle)
    reader.wrong("active", Json(watts.active).dump() + " is less than idle draws, " +
                               Json(watts.idle).dump());
  if (measured) *measured = reader.truth("measured", false);
  reader.finish();
  return watts;
}

// Notes names that are empty or there twice.
class Names {
 public:
  void take(ObjectReader& reader, const std::string& name) {
    if (name.empty()) reader.wrong("name", "is empty");
    if (!known_.insert(name).second) reader.wrong("name", "'" + name + "' is there twice");
  }
  bool contains(const std::string& name) const { return known_.contains(name); }
  std::size_t size() const { return known_.size(); }

 private:
  std::set<std::string> known_;
};

// --- nodes ---------------------------------------------------------------------------------------

CostSource read_costs(ObjectReader& parent, Faults& faults) {
  CostSource costs;
  const Json* json = parent.object("costs");
  if (!json) return costs;
  ObjectReader reader(*json, parent.place_of("costs"), faults);
  costs.profile = reader.text("profile", "");
  costs.flops = reader.number("flops", 0, most_flops, 0);
  costs.memory_bandwidth = reader.number("memory_bandwidth", 0, most_bandwidth, 0);
  costs.uncertainty = reader.number("uncertainty", 1, 100, CostSource{}.uncertainty);
  if (costs.profile.empty() && costs.flops <= 0)
    parent.wrong("costs", "names neither a profile nor flops: nothing tells what work costs");
  reader.finish();
  return costs;
}

class NodeReader {
 public:
  NodeReader(const Json& json, const std::string& place, Faults& faults)
      : reader_(json, place, faults), faults_(faults) {}

  PlatformNode read(Names& names) {
    node_.name = reader_.text("name");
    names.take(reader_, node_.name);
    node_.count = static_cast<int>(reader_.whole("count", 1, most_nodes, 1));
    Names hubs, groups;
    reader_.each(
        "hubs",
        [&](const Json& json, const std::string& place) {
          ObjectReader hub(json, place, faults_);
          node_.hubs.push_back({hub.text("name"), link_in(hub)});
          hubs.take(hub, node_.hubs.back().name);
          hub.finish();
        },
        false);
    reader_.each("groups", [&](const Json& json, const std::string& place) {
      ObjectReader group(json, place, faults_);
      node_.groups.push_back(group_in(group));
      groups.take(group, node_.groups.back().name);
      group.finish();
    });
    if (groups.size() == 0) reader_.wrong("groups", "there is none: nothing can compute here");
    node_.attached = reader_.text("switch", "");
    node_.link = link_at(reader_, "link", faults_);
    read_unused_watts();
    node_.price = price_in();
    reader_.finish();
    return std::move(node_);
  }

 private:
  PlatformGroup group_in(ObjectReader& reader) {
    PlatformGroup group;
    group.name = reader.text("name");
    group.kind = reader.word<DeviceKind>("kind", [](const std::string& name) {
      if (const auto kind = device_kind_named(name)) return *kind;
      throw InputError("device '" + name + "' is unknown: use cpu or cuda");
    });
    group.count = static_cast<int>(reader.whole("count", 1, 65536));
    group.memory = reader.whole("memory_bytes", 1, std::int64_t{1} << 50);
    group.watts = read_watts(reader, faults_, &group.watts_measured);
    reader.each(
        "states",
        [&](const Json& json, const std::string& place) {
          ObjectReader state(json, place, faults_);
          group.states.push_back(
              {state.text("name"), state.number("speed", 1e-3, 100), read_watts(state, faults_)});
          state.finish();
        },
        false);
    if (const Json* json = reader.object("slow_cores", false))
      group.slow_cores = slow_cores_in(*json, group, reader);
    group.costs = read_costs(reader, faults_);
    const bool gpu = group.kind == DeviceKind::cuda;
    if (const Json* json = reader.object("bus", gpu)) group.bus = bus_in(*json, reader);
    if (group.bus && !gpu)
      reader.wrong("bus", "cores are at their node's memory: only GPUs have one");
    return group;
  }

  SlowCores slow_cores_in(const Json& json, const PlatformGroup& group, ObjectReader& parent) {
    ObjectReader reader(json, parent.place_of("slow_cores"), faults_);
    const SlowCores slow{static_cast<int>(reader.whole("count", 1, 65536)),
                         reader.number("slow", 1, 1000),
                         reader.number("active_watts", 0, most_watts)};
    if (group.kind != DeviceKind::cpu || slow.count >= group.count)
      reader.wrong("count", "a group of " + std::to_string(group.count) + " " +
                                std::string(device_kind_name(group.kind)) +
                                " devices has no so many slow cores beside faster ones");
    if (slow.active_watts < group.watts.idle)
      reader.wrong("active_watts",
                   "is less than the group's cores draw idle, " + Json(group.watts.idle).dump());
    if (!group.states.empty())
      parent.wrong("slow_cores", "power states and slow cores do not go together");
    reader.finish();
    return slow;
  }

  void read_unused_watts() {
    const std::size_t before = faults_.size();
    constexpr double missing = -1;
    const double watts = reader_.number("unused_watts", 0, most_watts, missing);
    if (watts == missing || faults_.size() > before) return;
    node_.unused_watts = watts;
    if (watts > node_.idle_watts())
      reader_.wrong("unused_watts", Json(watts).dump() + " is more than its devices draw idle, " +
                                        Json(node_.idle_watts()).dump());
  }

  std::optional<Price> price_in() {
    const Json* json = reader_.object("price", false);
    if (!json) return std::nullopt;
    ObjectReader reader(*json, reader_.place_of("price"), faults_);
    const bool rented = json->contains("per_hour");
    Price price;
    if (rented) {
      price.per_hour = reader.number("per_hour", 1e-9, most_money);
      price.minimum_hours = reader.number("minimum_hours", 0, most_hours, 0);
    } else {
      price.purchase = reader.number("purchase", 0, most_money);
      price.lifetime_hours = reader.number("lifetime_hours", 1e-3, most_hours);
    }
    reader.finish();
    return price;
  }

  Bus bus_in(const Json& json, ObjectReader& group) {
    ObjectReader reader(json, group.place_of("bus"), faults_);
    Bus bus{reader.number("to_device", least_bandwidth, most_bandwidth),
            reader.number("from_device", least_bandwidth, most_bandwidth),
            reader.number("latency", 0, most_latency, 0), reader.text("hub", "")};
    if (!bus.hub.empty() && std::ranges::find(node_.hubs, bus.hub, &Hub::name) == node_.hubs.end())
      reader.wrong("hub", "its node has no hub '" + bus.hub + "'");
    reader.finish();
    return bus;
  }

  ObjectReader reader_;
  Faults& faults_;
  PlatformNode node_;
};

// --- network -------------------------------------------------------------------------------------

class NetworkReader {
 public:
  NetworkReader(const Json& json, const Platform& platform, Faults& faults)
      : reader_(json, "network", faults), platform_(platform), faults_(faults) {}

  NetworkSpec read() {
    network_.topology = reader_.word<Topology>("topology", topology_named);
    const Topology topology = network_.topology;
    const bool own_links = std::ranges::all_of(
        platform_.nodes, [](const PlatformNode& each) { return each.link.has_value(); });
    const bool listed = topology == Topology::routes;
    if (!listed && (!own_links || reader_.number("bandwidth", 0, most_bandwidth, 0) > 0))
      network_.link = link_in(reader_);
    if (topology == Topology::star) network_.backbone = link_at(reader_, "backbone", faults_);
    if (switched()) read_switches();
    if (topology == Topology::wide_area) read_sites();
    if (listed) read_routes();
    reader_.finish();
    check_attachments();
    return std::move(network_);
  }

 private:
  bool switched() const {
    return network_.topology == Topology::tree || network_.topology == Topology::fat_tree ||
           network_.topology == Topology::wide_area;
  }

  void read_switches() {
    Names names;
    reader_.each("switches", [&](const Json& json, const std::string& place) {
      ObjectReader reader(json, place, faults_);
      Switch made;
      made.name = reader.text("name");
      made.count = static_cast<int>(reader.whole("count", 1, most_nodes, 1));
      made.parent = reader.text("parent", "");
      if (!made.parent.empty()) made.link = link_in(reader);
      if (network_.topology == Topology::fat_tree)
        made.uplinks = static_cast<int>(reader.whole("uplinks", 1, 1024, 1));
      if (made.parent.empty() && made.count > 1)
        reader.wrong("count", "a root stands alone: give it a parent, or name each");
      names.take(reader, made.name);
      reader.finish();
      network_.switches.push_back(std::move(made));
    });
    std::int64_t links = 0;
    for (const Switch& each : network_.switches) links += std::int64_t{each.count} * each.uplinks;
    if (links > most_nodes)
      reader_.wrong("switches", "more than " + std::to_string(most_nodes) + " links between them");
    check_parents(names);
  }

  void check_parents(const Names& names) {
    std::map<std::string, std::string> parent_of;
    std::size_t roots = 0;
    const auto place = [](std::size_t i) { return "switches[" + std::to_string(i) + "].parent"; };
    bool known = true;
    for (std::size_t i = 0; i < network_.switches.size(); ++i) {
      const Switch& each = network_.switches[i];
      parent_of[each.name] = each.parent;
      roots += each.parent.empty() ? 1 : 0;
      if (each.parent.empty() || names.contains(each.parent)) continue;
      reader_.wrong(place(i), "there is no switch '" + each.parent + "'");
      known = false;
    }
    if (!known) return;
    for (std::size_t i = 0; i < network_.switches.size(); ++i) {
      std::string at = network_.switches[i].name;
      for (std::size_t climbed = 0; !at.empty() && climbed <= network_.switches.size(); ++climbed)
        at = parent_of[at];
      if (at.empty()) continue;
      // One report is enough: all switches of a cycle are in it.
      return reader_.wrong(place(i), "the way up from '" + network_.switches[i].name +
                                         "' is a cycle: one switch must be a root, without a "
                                         "parent");
    }
    if (network_.topology != Topology::wide_area && roots != 1)
      reader_.wrong("switches", std::to_string(roots) + " have no parent, but a " +
                                    std::string(topology_name(network_.topology)) +
                                    " has one root");
  }

  void read_sites() {
    std::map<std::string, std::string> joined;  // towards a leader of what hangs together
    for (const Switch& each : network_.switches)
      if (each.parent.empty()) joined[each.name] = each.name;
    const auto leader = [&](std::string name) {
      while (joined[name] != name) name = joined[name];
      return name;
    };
    reader_.each(
        "sites",
        [&](const Json& json, const std::string& place) {
          ObjectReader reader(json, place, faults_);
          const auto [first, second] = pair_in(reader);
          const LinkSpeed link = link_in(reader);
          reader.finish();
          bool known = first != second;
          if (!known) reader.wrong("between", "'" + first + "' is joined with itself");
          for (const std::string& name : {first, second}) {
            if (joined.contains(name)) continue;
            reader.wrong("between", "'" + name + "' is not a switch without a parent");
            known = false;
          }
          if (!known) return;
          network_.sites.push_back({first, second, link});
          joined[leader(first)] = leader(second);
        },
        false);
    std::set<std::string> apart;
    std::vector<std::string> roots;
    for (const auto& entry : joined) roots.push_back(entry.first);
    for (const std::string& root : roots) apart.insert(leader(root));
    if (apart.size() > 1)
      reader_.wrong("sites", "'" + *apart.begin() + "' and '" + *std::next(apart.begin()) +
                                 "' are not joined, not even by others");
  }

  std::pair<std::string, std::string> pair_in(ObjectReader& reader) {
    const std::vector<std::string> names = texts_in(reader, "between");
    if (names.size() == 2) return {names[0], names[1]};
    reader.wrong("between", "is not a list of two names");
    return {};
  }

  std::vector<std::string> texts_in(ObjectReader& reader, const char* key) {
    std::vector<std::string> texts;
    reader.each(key, [&](const Json& json, const std::string& place) {
      if (json.is_string())
        texts.push_back(json.get<std::string>());
      else
        faults_.push_back(place + ": is no text");
    });
    return texts;
  }

  void read_routes() {
    Names links;
    std::set<std::string> nodes;
    reader_.each("links", [&](const Json& json, const std::string& place) {
      ObjectReader reader(json, place, faults_);
      network_.links.push_back({reader.text("name"), link_in(reader)});
      links.take(reader, network_.links.back().name);
      reader.finish();
    });
    for (const PlatformNode& node : platform_.nodes) {
      nodes.insert(node.name);
      if (node.count > 1)
        reader_.wrong("routes",
                      "node '" + node.name + "' has a count: name each, or take another topology");
    }
    std::set<std::pair<std::string, std::string>> pairs;
    reader_.each("routes", [&](const Json& json, const std::string& place) {
      ObjectReader reader(json, place, faults_);
      const auto [first, second] = pair_in(reader);
      for (const std::string& name : {first, second})
        if (!nodes.contains(name)) reader.wrong("between", "there is no node '" + name + "'");
      Route route{first, second, texts_in(reader, "links")};
      if (route.links.empty()) reader.wrong("links", "there is none");
      for (const std::string& name : route.links)
        if (!links.contains(name)) reader.wrong("links", "there is no link '" + name + "'");
      if (first == second) reader.wrong("between", "'" + first + "' is joined with itself");
      if (!pairs.insert(std::minmax(first, second)).second)
        reader.wrong("between", "this pair is there twice");
      reader.finish();
      network_.routes.push_back(std::move(route));
    });
    const std::size_t all = nodes.size() * (nodes.size() - 1) / 2;
    if (pairs.size() < all)
      reader_.wrong("routes", std::to_string(pairs.size()) + " pairs of nodes of " +
                                  std::to_string(all) + " are joined");
  }

  void check_attachments() {
    for (std::size_t i = 0; i < platform_.nodes.size(); ++i) {
      const std::string& name = platform_.nodes[i].attached;
      const std::string key = "nodes[" + std::to_string(i) + "].switch: ";
      const bool known =
          std::ranges::find(network_.switches, name, &Switch::name) != network_.switches.end();
      if (switched() && !known)
        faults_.push_back(key + (name.empty() ? "is missing: what is it attached to?"
                                              : "there is no switch '" + name + "'"));
      if (!switched() && !name.empty())
        faults_.push_back(key + "topology " + std::string(topology_name(network_.topology)) +
                          " has no named switches");
    }
  }

  ObjectReader reader_;
  const Platform& platform_;
  Faults& faults_;
  NetworkSpec network_;
};

Platform read(const Json& json, Faults& faults) {
  Platform platform;
  ObjectReader reader(json, "", faults);
  const std::int64_t version = reader.whole("regatta_platform", 0, INT64_MAX);
  if (!faults.empty()) return platform;
  // What another version means by the same words is not known.
  if (version != platform_version) {
    reader.wrong("regatta_platform", std::to_string(version) +
                                         " is another version: this program reads " +
                                         std::to_string(platform_version));
    return platform;
  }
  reader.text("$schema", "");
  platform.name = reader.text("name");
  platform.remark = reader.text("remark", "");
  platform.energy_price = reader.number("energy_price", 0, most_money, 0);
  Names names;
  reader.each("nodes", [&](const Json& each, const std::string& place) {
    platform.nodes.push_back(NodeReader(each, place, faults).read(names));
  });
  if (platform.nodes.empty()) reader.wrong("nodes", "there is none");
  if (platform.node_count() > most_nodes)
    reader.wrong("nodes", "more than " + std::to_string(most_nodes) + " of them");
  std::int64_t gpus = 0;
  for (const PlatformNode& node : platform.nodes)
    for (const PlatformGroup& group : node.groups)
      if (group.kind == DeviceKind::cuda) gpus += std::int64_t{node.count} * group.count;
  if (gpus > most_nodes) reader.wrong("nodes", "more than " + std::to_string(most_nodes) + " GPUs");
  const Json* network = reader.object("network", platform.node_count() > 1);
  if (network) platform.network = NetworkReader(*network, platform, faults).read();
  reader.finish();
  return platform;
}

}  // namespace

Platform platform_from_json(const Json& json, const std::string& who) {
  Faults faults;
  Platform platform = read(json, faults);
  require_none(who, faults);
  return platform;
}

Platform read_platform(const std::filesystem::path& file) {
  const std::string who = "'" + file.string() + "'";
  if (file.extension() == ".xml") return platform_from_xml(read_file(file), who);
  return platform_from_json(read_json(file), who);
}

}  // namespace regatta
