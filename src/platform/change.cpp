#include "platform/change.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace regatta {
namespace {

constexpr const char* examples =
    "use \"+2 x NODE\", \"-NODE\", \"-2 x NODE\", \"LINK x10\" or \"batch 512\"";

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(' '), last = text.find_last_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

template <class Number>
bool parsed(const std::string& text, Number& value) {
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc{} && stop == text.data() + text.size();
}

std::string names(const Platform& platform) {
  std::string text;
  for (const PlatformNode& node : platform.nodes) text += (text.empty() ? "" : ", ") + node.name;
  return text;
}

PlatformNode& entry_named(Platform& platform, const std::string& name) {
  for (PlatformNode& node : platform.nodes)
    if (node.name == name) return node;
  throw InputError("--what-if: platform '" + platform.name + "' has no node '" + name +
                   "'; it has " + names(platform));
}

void add_nodes(Platform& platform, const std::string& name, int more) {
  PlatformNode& node = entry_named(platform, name);
  if (platform.network.topology == Topology::routes)
    throw InputError("--what-if: routes join nodes by name, so none can be added to '" +
                     platform.name + "'; take another topology");
  if (node.count + more < 0)
    throw InputError("--what-if: there are " + std::to_string(node.count) + " nodes '" + name +
                     "', " + std::to_string(-more) + " cannot go");
  node.count += more;
  std::erase_if(platform.nodes, [](const PlatformNode& each) { return each.count == 0; });
  if (platform.nodes.empty()) throw InputError("--what-if: without '" + name + "' no node is left");
}

// "NODE", or "NODE-3" of several alike.
std::string entry_of(const Platform& platform, const std::string& name) {
  const std::size_t dash = name.rfind('-');
  for (const PlatformNode& node : platform.nodes) {
    if (node.name == name) return name;
    int copy = 0;
    if (dash != std::string::npos && node.name == name.substr(0, dash) && node.count > 1 &&
        parsed(name.substr(dash + 1), copy) && copy >= 0 && copy < node.count)
      return node.name;
  }
  return name;
}

void remove_node(Platform& platform, const std::string& name) {
  const std::string entry = entry_of(platform, name);
  const PlatformNode& node = entry_named(platform, entry);
  if (platform.network.topology == Topology::routes)
    std::erase_if(platform.network.routes,
                  [&](const Route& route) { return route.first == name || route.second == name; });
  if (platform.network.topology != Topology::routes) {
    add_nodes(platform, entry, entry == name ? -node.count : -1);
    return;
  }
  std::erase_if(platform.nodes, [&](const PlatformNode& each) { return each.name == name; });
  if (platform.nodes.empty()) throw InputError("--what-if: without '" + name + "' no node is left");
}

void scale_link(Platform& platform, const std::string& name, double factor) {
  NetworkSpec& network = platform.network;
  int found = 0;
  const auto scale = [&](LinkSpeed& link) {
    link.bandwidth *= factor;
    ++found;
  };
  if (name == "network") {
    scale(network.link);
    for (PlatformNode& node : platform.nodes)
      if (node.link) scale(*node.link);
  }
  for (NamedLink& each : network.links)
    if (each.name == name) scale(each.link);
  for (Switch& each : network.switches)
    if (each.name == name && !each.parent.empty()) scale(each.link);
  for (SiteLink& each : network.sites)
    if (name == each.first + "-" + each.second || name == each.second + "-" + each.first)
      scale(each.link);
  for (PlatformNode& node : platform.nodes)
    if (node.name == name && network.topology != Topology::routes) {
      if (!node.link) node.link = network.link;
      scale(*node.link);
    }
  if (found > 0) return;
  std::string known = "network";
  for (const NamedLink& each : network.links) known += ", " + each.name;
  for (const Switch& each : network.switches)
    if (!each.parent.empty()) known += ", " + each.name;
  for (const SiteLink& each : network.sites) known += ", " + each.first + "-" + each.second;
  throw InputError("--what-if: platform '" + platform.name + "' has no link '" + name +
                   "'; it has " + known + " and its nodes' own");
}

}  // namespace

Platform changed_platform(const Platform& platform, const std::string& change) {
  Platform changed = platform;
  const std::string text = trimmed(change);
  const std::string who = "--what-if \"" + change + "\": ";
  if (text.starts_with('+') || text.starts_with('-')) {
    const std::size_t times = text.find(" x ");
    int count = 0;
    if (times != std::string::npos && parsed(trimmed(text.substr(1, times - 1)), count)) {
      constexpr int most = 1'000'000;
      if (count < 1 || count > most) throw InputError(who + "use 1 to 1000000 nodes");
      add_nodes(changed, trimmed(text.substr(times + 3)), text.front() == '+' ? count : -count);
    } else if (text.starts_with('+')) {
      add_nodes(changed, trimmed(text.substr(1)), 1);
    } else {
      remove_node(changed, trimmed(text.substr(1)));
    }
  } else {
    const std::size_t times = text.rfind(" x");
    double factor = 0;
    if (times == std::string::npos || !parsed(trimmed(text.substr(times + 2)), factor) ||
        !(factor > 0) || factor > 1e9)
      throw InputError(who + "is not understood: " + examples);
    scale_link(changed, trimmed(text.substr(0, times)), factor);
  }
  changed.name += " (" + text + ")";
  // All that a file must keep, this must too.
  return platform_from_json(changed.to_json(), who + "the changed platform");
}

}  // namespace regatta
