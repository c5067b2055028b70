#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <span>

#include "base/error.h"
#include "platform/simgrid_xml.h"
#include "platform/xml.h"

namespace regatta {
namespace {

// A host says nothing of its memory unless we wrote it.
constexpr std::int64_t assumed_memory = std::int64_t{8} << 30;

struct Unit {
  std::string_view name;
  double factor;
};
constexpr Unit speed_units[]{{"Yf", 1e24}, {"Zf", 1e21}, {"Ef", 1e18}, {"Pf", 1e15}, {"Tf", 1e12},
                             {"Gf", 1e9},  {"Mf", 1e6},  {"kf", 1e3},  {"f", 1},     {"", 1}};
constexpr Unit bandwidth_units[]{
    {"TBps", 1e12},        {"GBps", 1e9},      {"MBps", 1e6},
    {"kBps", 1e3},         {"Bps", 1},         {"TiBps", 1099511627776.0},
    {"GiBps", 1073741824}, {"MiBps", 1048576}, {"KiBps", 1024},
    {"Tbps", 1.25e11},     {"Gbps", 1.25e8},   {"Mbps", 1.25e5},
    {"kbps", 125},         {"bps", 0.125},     {"", 1}};
constexpr Unit time_units[]{{"ps", 1e-12}, {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3},
                            {"s", 1},      {"m", 60},    {"h", 3600},  {"", 1}};

constexpr Unit plain_units[]{{"", 1}};

class Importer {
 public:
  explicit Importer(const std::string& who) : who_(who) {}

  Platform read(const XmlElement& root) {
    if (root.name != "platform") fail(root, "the outermost element is not <platform>");
    allow(root, {"version"});
    if (const std::string version = get(root, "version", "4.1"); !version.starts_with("4"))
      fail(root, "version " + version + " is another version: this program reads 4 and 4.1");
    platform_.remark = "from a SimGrid platform file";
    if (root.children.size() != 1) fail(root, "there is not exactly one zone in it");
    const XmlElement& outer = root.children.front();
    if (outer.name == "cluster")
      cluster(outer);
    else if (outer.name == "zone" || outer.name == "AS")
      zone(outer);
    else
      fail(outer, "<" + outer.name + "> is not known here");
    fold_gpus();
    if (platform_.nodes.empty()) fail(outer, "there is no host in it");
    return std::move(platform_);
  }

 private:
  struct Edge {
    const XmlElement* element;
    std::string first, second;
    std::vector<std::string> links;
  };

  [[noreturn]] void fail(const XmlElement& element, const std::string& what) const {
    throw InputError(who_ + ", line " + std::to_string(element.line) + ": " + what);
  }
  void allow(const XmlElement& element, std::initializer_list<std::string_view> known) const {
    for (const auto& [key, value] : element.attributes)
      if (std::ranges::find(known, std::string_view(key)) == known.end())
        fail(element, "<" + element.name + ">: attribute '" + key + "' is not known here");
  }
  std::string get(const XmlElement& element, const std::string& key,
                  std::optional<std::string> otherwise = {}) const {
    const auto found = element.attributes.find(key);
    if (found != element.attributes.end()) return found->second;
    if (!otherwise) fail(element, "<" + element.name + "> has no " + key);
    return *otherwise;
  }
  double quantity(const XmlElement& element, const std::string& text, std::span<const Unit> units,
                  double least) const {
    double value = 0;
    const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string_view rest(stop, static_cast<std::size_t>(text.data() + text.size() - stop));
    const auto unit = std::ranges::find(units, rest, &Unit::name);
    if (code != std::errc{} || unit == units.end() || !std::isfinite(value) ||
        !(value * unit->factor >= least) || value * unit->factor > 1e24)
      fail(element, "<" + element.name + ">: '" + text.substr(0, 40) + "' is no usable quantity");
    return value * unit->factor;
  }
  int whole(const XmlElement& element, const std::string& text, int least, int most) const {
    int value = 0;
    const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc{} || stop != text.data() + text.size() || value < least || value > most)
      fail(element, "<" + element.name + ">: '" + text.substr(0, 40) +
                        "' is not a whole number from " + std::to_string(least) + " to " +
                        std::to_string(most));
    return value;
  }
  LinkSpeed speed(const XmlElement& element, const std::string& bandwidth,
                  const std::string& latency) const {
    return {quantity(element, bandwidth, bandwidth_units, 1),
            quantity(element, latency, time_units, 0)};
  }

  // --- elements

  void zone(const XmlElement& element) {
    allow(element, {"id", "routing"});
    platform_.name = get(element, "id");
    const std::string routing = get(element, "routing");
    const bool full = routing == "Full";
    if (!full && routing != "Floyd" && routing != "Dijkstra" && routing != "DijkstraCache" &&
        routing != "None")
      fail(element, "routing '" + routing + "' is not known here: Full, Floyd, Dijkstra");
    for (const XmlElement& each : element.children) {
      if (each.name == "host")
        host(each);
      else if (each.name == "router")
        router(each);
      else if (each.name == "link")
        link(each);
      else if (each.name == "route")
        route(each);
      else if (each.name == "cluster" && element.children.size() == 1)
        return cluster(each);
      else
        fail(each, "<" + each.name + "> is not known here");
    }
    if (full)
      listed(element);
    else
      by_routers();
  }

  void host(const XmlElement& element) {
    allow(element, {"id", "speed", "core", "pstate"});
    PlatformNode node;
    node.name = get(element, "id");
    if (!names_.insert(node.name).second) fail(element, "'" + node.name + "' is there twice");
    PlatformGroup group;
    group.name = "cpu";
    group.memory = assumed_memory;
    group.count = whole(element, get(element, "core", "1"), 1, 65536);
    const std::string speeds = get(element, "speed");
    group.costs.flops = quantity(element, speeds.substr(0, speeds.find(',')), speed_units, 1);
    std::string of;
    for (const XmlElement& each : element.children) {
      if (each.name != "prop") fail(each, "<" + each.name + "> is not known here");
      const std::string key = get(each, "id"), value = get(each, "value");
      if (key == "wattage_per_state")
        group.watts = watts(each, value, group.count);
      else if (key == "memory_bytes")
        group.memory =
            static_cast<std::int64_t>(std::min(quantity(each, value, plain_units, 1), 1e15));
      else if (key == "regatta_gpu_of")
        of = value;
      else if (key == "regatta_group")
        group.name = value;
    }
    if (!of.empty()) {
      group.kind = DeviceKind::cuda;
      gpus_.push_back({&element, node.name, of, group});
      return;
    }
    node.groups = {group};
    platform_.nodes.push_back(std::move(node));
  }

  Watts watts(const XmlElement& element, const std::string& text, int cores) const {
    const std::string first = text.substr(0, text.find(','));
    const std::size_t colon = first.find(':');
    if (colon == std::string::npos) fail(element, "'" + first.substr(0, 40) + "' is no wattage");
    const auto number = [&](std::string piece) {
      while (piece.starts_with(' ')) piece.erase(0, 1);
      return quantity(element, piece, plain_units, 0) / cores;
    };
    return {number(first.substr(0, colon)), number(first.substr(first.rfind(':') + 1))};
  }

  void router(const XmlElement& element) {
    allow(element, {"id", "coordinates"});
    const std::string name = get(element, "id");
    if (!names_.insert(name).second) fail(element, "'" + name + "' is there twice");
    routers_.insert(name);
    platform_.network.switches.push_back({.name = name});
  }

  void link(const XmlElement& element) {
    allow(element, {"id", "bandwidth", "latency", "sharing_policy"});
    const std::string policy = get(element, "sharing_policy", "SHARED");
    if (policy != "SHARED" && policy != "SPLITDUPLEX")
      fail(element, "sharing_policy '" + policy + "' is not known here");
    const std::string name = get(element, "id");
    if (!links_
             .emplace(name,
                      speed(element, get(element, "bandwidth"), get(element, "latency", "0s")))
             .second)
      fail(element, "link '" + name + "' is there twice");
  }

  void route(const XmlElement& element) {
    allow(element, {"src", "dst", "symmetrical"});
    Edge edge{&element, get(element, "src"), get(element, "dst"), {}};
    for (const XmlElement& each : element.children) {
      if (each.name != "link_ctn") fail(each, "<" + each.name + "> is not known here");
      allow(each, {"id", "direction"});
      edge.links.push_back(get(each, "id"));
      if (!links_.contains(edge.links.back()))
        fail(each, "there is no link '" + edge.links.back() + "'");
    }
    for (const std::string& end : {edge.first, edge.second})
      if (!names_.contains(end)) fail(element, "there is no host or router '" + end + "'");
    if (edge.links.empty()) fail(element, "the route has no link");
    edges_.push_back(std::move(edge));
  }

  LinkSpeed joint(const Edge& edge) const {
    LinkSpeed all{std::numeric_limits<double>::infinity(), 0};
    for (const std::string& name : edge.links) {
      const LinkSpeed& each = links_.at(name);
      all.bandwidth = std::min(all.bandwidth, each.bandwidth);
      all.latency += each.latency;
    }
    return all;
  }

  // --- networks

  bool is_gpu(const std::string& name) const {
    return std::ranges::find(gpus_, name, &Gpu::name) != gpus_.end();
  }

  void listed(const XmlElement& zone) {
    platform_.network.topology = Topology::routes;
    for (const auto& [name, speed] : links_) platform_.network.links.push_back({name, speed});
    std::set<std::pair<std::string, std::string>> pairs;
    for (const Edge& edge : edges_) {
      if (is_gpu(edge.first) || is_gpu(edge.second)) continue;
      if (edge.first == edge.second) continue;  // a loopback
      if (pairs.insert(std::minmax(edge.first, edge.second)).second)
        platform_.network.routes.push_back({edge.first, edge.second, edge.links});
    }
    const std::size_t count = platform_.nodes.size();
    if (pairs.size() != count * (count - std::min<std::size_t>(count, 1)) / 2)
      fail(zone, std::to_string(pairs.size()) + " pairs of hosts are joined, not all");
  }

  void by_routers() {
    platform_.network.topology = Topology::wide_area;
    for (const Edge& edge : edges_) {
      const bool first = routers_.contains(edge.first), second = routers_.contains(edge.second);
      if (is_gpu(edge.first) || is_gpu(edge.second)) continue;
      if (first && second) {
        if (edge.first != edge.second)
          platform_.network.sites.push_back({edge.first, edge.second, joint(edge)});
      } else if (first || second) {
        const std::string& host = first ? edge.second : edge.first;
        const auto node = std::ranges::find(platform_.nodes, host, &PlatformNode::name);
        if (!node->attached.empty() && node->attached != (first ? edge.first : edge.second))
          fail(*edge.element, "host '" + host + "' has two routers");
        node->attached = first ? edge.first : edge.second;
        node->link = joint(edge);
      } else {
        fail(*edge.element, "a route from host to host: such zones are read with routers only");
      }
    }
    if (platform_.nodes.size() > 1)
      for (const PlatformNode& node : platform_.nodes)
        if (node.attached.empty())
          throw InputError(who_ + ": host '" + node.name + "' has no route to a router");
  }

  void cluster(const XmlElement& element) {
    allow(element,
          {"id", "prefix", "suffix", "radical", "speed", "core", "bw", "lat", "bb_bw", "bb_lat",
           "topology", "topo_parameters", "sharing_policy", "bb_sharing_policy"});
    if (!element.children.empty())
      fail(element.children.front(), "<" + element.children.front().name + "> is not known here");
    if (platform_.name.empty()) platform_.name = get(element, "id");
    PlatformNode node;
    node.name = get(element, "prefix", get(element, "id"));
    node.count = radical(element);
    PlatformGroup group;
    group.name = "cpu";
    group.memory = assumed_memory;
    group.count = whole(element, get(element, "core", "1"), 1, 65536);
    group.costs.flops = quantity(element, get(element, "speed"), speed_units, 1);
    node.groups = {group};
    NetworkSpec& network = platform_.network;
    network.link = speed(element, get(element, "bw"), get(element, "lat", "0s"));
    const std::string topology = get(element, "topology", "FLAT");
    if (topology == "FAT_TREE") {
      fat_tree(element, node);
    } else if (topology == "FLAT") {
      if (element.attributes.contains("bb_bw"))
        network.backbone = speed(element, get(element, "bb_bw"), get(element, "bb_lat", "0s"));
    } else {
      fail(element, "topology '" + topology + "' is not known here: FLAT or FAT_TREE");
    }
    platform_.nodes.push_back(std::move(node));
  }

  int radical(const XmlElement& element) const {
    const std::string text = get(element, "radical");
    int count = 0;
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      const std::string piece = text.substr(begin, end - begin);
      const std::size_t dash = piece.find('-');
      const int first = whole(element, piece.substr(0, dash), 0, 1'000'000);
      const int last = dash == std::string::npos
                           ? first
                           : whole(element, piece.substr(dash + 1), first, 1'000'000);
      count += last - first + 1;
      begin = end + 1;
    }
    return count;
  }

  // "levels;children,...;parents,...;links,...": the roots of all levels but one are taken as one.
  void fat_tree(const XmlElement& element, PlatformNode& node) {
    std::vector<std::vector<int>> rows;
    std::string text = get(element, "topo_parameters");
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(';', begin), text.size());
      std::vector<int> row;
      for (std::size_t at = begin; at <= end;) {
        const std::size_t comma = std::min(text.find(',', at), end);
        row.push_back(whole(element, text.substr(at, comma - at), 1, 100'000));
        at = comma + 1;
      }
      rows.push_back(std::move(row));
      begin = end + 1;
    }
    const bool two_levels = rows.size() == 4 && rows[0] == std::vector<int>{2} &&
                            rows[1].size() == 2 && rows[2].size() == 2 && rows[3].size() == 2;
    if (!two_levels || rows[2][0] != 1)
      fail(element, "fat trees of two levels, with one switch above each host, are known here");
    if (rows[1][0] * rows[1][1] != node.count)
      fail(element, "topo_parameters do not fit " + std::to_string(node.count) + " hosts");
    NetworkSpec& network = platform_.network;
    network.topology = Topology::fat_tree;
    network.switches = {{.name = "core"},
                        {.name = "leaf",
                         .count = rows[1][1],
                         .parent = "core",
                         .link = network.link,
                         .uplinks = std::min(rows[2][1] * rows[3][1], 1024)}};
    node.attached = "leaf";
  }

  // --- GPUs

  struct Gpu {
    const XmlElement* element;
    std::string name, node;
    PlatformGroup group;
  };

  void fold_gpus() {
    for (Gpu& gpu : gpus_) {
      const auto node = std::ranges::find(platform_.nodes, gpu.node, &PlatformNode::name);
      if (node == platform_.nodes.end()) fail(*gpu.element, "there is no host '" + gpu.node + "'");
      for (const Edge& edge : edges_)
        if (edge.first == gpu.name || edge.second == gpu.name) {
          const LinkSpeed speed = joint(edge);
          gpu.group.bus = Bus{speed.bandwidth, speed.bandwidth, speed.latency, {}};
        }
      if (!gpu.group.bus) fail(*gpu.element, "no route to GPU '" + gpu.name + "'");
      const auto known = std::ranges::find(node->groups, gpu.group.name, &PlatformGroup::name);
      if (known == node->groups.end())
        node->groups.push_back(gpu.group);
      else
        ++known->count;
    }
  }

  const std::string& who_;
  Platform platform_;
  std::set<std::string> names_, routers_;
  std::map<std::string, LinkSpeed> links_;
  std::vector<Edge> edges_;
  std::vector<Gpu> gpus_;
};

}  // namespace

Platform platform_from_xml(std::string_view text, const std::string& who) {
  const Platform platform = Importer(who).read(parse_xml(text, who));
  // The same rules as for our own files: names, ranges, joined networks.
  return platform_from_json(platform.to_json(), who);
}

}  // namespace regatta
