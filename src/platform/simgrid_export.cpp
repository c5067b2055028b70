#include <cstdio>

#include "base/error.h"
#include "platform/simgrid_xml.h"
#include "platform/wiring.h"
#include "platform/xml.h"

namespace regatta {
namespace {

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

class Exporter {
 public:
  explicit Exporter(const Platform& platform) : platform_(platform), wiring_(platform) {}

  std::string write() {
    const Topology topology = platform_.network.topology;
    const bool full = topology == Topology::routes && wiring_.nodes() > 1;
    if (platform_.network.backbone)
      throw InputError("platform '" + platform_.name +
                       "': SimGrid's zones have no place for a backbone that both directions "
                       "share; leave it out");
    for (int node = 0; node < wiring_.nodes(); ++node) hosts(node);
    if (wiring_.nodes() > 1) switch (topology) {
        case Topology::star:
          star();
          break;
        case Topology::ring:
          ring();
          break;
        case Topology::routes:
          routes();
          break;
        default:
          switches();
      }
    return "<?xml version='1.0'?>\n"
           "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
           "<platform version=\"4.1\">\n  <zone id=\"" +
           xml_escaped(platform_.name) + "\" routing=\"" + (full ? "Full" : "Dijkstra") + "\">\n" +
           points_ + links_ + ways_ + "  </zone>\n</platform>\n";
  }

 private:
  void host(const std::string& name, const PlatformGroup& group, int cores,
            const std::string& props) {
    const double all = group.watts.active * cores, idle = group.watts.idle * cores;
    const double speed = group.costs.flops > 0 ? group.costs.flops : 1e9;
    points_ += "    <host id=\"" + xml_escaped(name) + "\" speed=\"" + number(speed) +
               "f\" core=\"" + std::to_string(cores) + "\">\n" +
               "      <prop id=\"wattage_per_state\" value=\"" + number(idle) + ":" + number(idle) +
               ":" + number(all) + "\"/>\n" + "      <prop id=\"memory_bytes\" value=\"" +
               std::to_string(group.memory) + "\"/>\n" + props + "    </host>\n";
  }

  void hosts(int node) {
    const std::string name = wiring_.node_name(node);
    const PlatformNode& entry = wiring_.node(node);
    bool cores = false;
    for (const PlatformGroup& group : entry.groups) {
      if (group.kind == DeviceKind::cuda) continue;
      if (cores)
        throw InputError("node '" + entry.name +
                         "' has two groups of cores: SimGrid's hosts have "
                         "one");
      host(name, group, group.count, "");
      cores = true;
    }
    if (!cores) throw InputError("node '" + entry.name + "' has no cores: it would be no host");
    for (const PlatformGroup& group : entry.groups) {
      if (group.kind == DeviceKind::cpu) continue;
      for (int unit = 0; unit < group.count; ++unit) {
        const std::string gpu = name + "." + group.name + "." + std::to_string(unit);
        host(gpu, group, 1,
             "      <prop id=\"regatta_gpu_of\" value=\"" + xml_escaped(name) + "\"/>\n" +
                 "      <prop id=\"regatta_group\" value=\"" + xml_escaped(group.name) + "\"/>\n");
        join(gpu, name,
             {std::min(group.bus->to_device, group.bus->from_device), group.bus->latency});
      }
    }
  }

  void link(const std::string& name, const LinkSpeed& speed) {
    links_ += "    <link id=\"" + xml_escaped(name) + "\" bandwidth=\"" + number(speed.bandwidth) +
              "Bps\" latency=\"" + number(speed.latency) + "s\" sharing_policy=\"SPLITDUPLEX\"/>\n";
  }
  // A link of its own.
  void join(const std::string& first, const std::string& second, const LinkSpeed& speed) {
    const std::string name = "link" + std::to_string(joined_++);
    link(name, speed);
    way(first, second, {name});
  }
  void way(const std::string& first, const std::string& second,
           const std::vector<std::string>& links) {
    ways_ += "    <route src=\"" + xml_escaped(first) + "\" dst=\"" + xml_escaped(second) + "\">\n";
    for (const std::string& each : links)
      ways_ += "      <link_ctn id=\"" + xml_escaped(each) + "\" direction=\"UP\"/>\n";
    ways_ += "    </route>\n";
  }
  void router(const std::string& name) {
    points_ += "    <router id=\"" + xml_escaped(name) + "\"/>\n";
  }
  LinkSpeed own_link(int node) const {
    return wiring_.node(node).link.value_or(platform_.network.link);
  }

  void star() {
    router("switch");
    for (int node = 0; node < wiring_.nodes(); ++node)
      join(wiring_.node_name(node), "switch", own_link(node));
  }
  void ring() {
    for (int node = 0; node < wiring_.nodes(); ++node)
      join(wiring_.node_name(node), wiring_.node_name((node + 1) % wiring_.nodes()),
           own_link(node));
  }
  void routes() {
    for (const NamedLink& each : platform_.network.links) link(each.name, each.link);
    for (const Route& each : platform_.network.routes) way(each.first, each.second, each.links);
  }
  void switches() {
    for (const Wiring::SwitchCopy& each : wiring_.switches()) router(each.name);
    for (const Wiring::SwitchCopy& each : wiring_.switches()) {
      if (each.parent.empty()) continue;
      LinkSpeed speed = each.spec->link;
      speed.bandwidth *= each.spec->uplinks;
      join(each.name, each.parent, speed);
    }
    for (const SiteLink& each : platform_.network.sites) join(each.first, each.second, each.link);
    for (int node = 0; node < wiring_.nodes(); ++node)
      join(wiring_.node_name(node),
           wiring_.switches()[static_cast<std::size_t>(wiring_.neighbourhood(node))].name,
           own_link(node));
  }

  const Platform& platform_;
  Wiring wiring_;
  std::string points_, links_, ways_;
  int joined_ = 0;
};

}  // namespace

std::string platform_to_xml(const Platform& platform) { return Exporter(platform).write(); }

}  // namespace regatta
