#include "app/node_places.h"

#include <algorithm>
#include <ranges>

#include "base/error.h"

namespace regatta::app {

std::vector<NamedNode> all_nodes(const Platform& platform) {
  std::vector<NamedNode> nodes;
  for (const PlatformNode& node : platform.nodes)
    for (int i = 0; i < node.count; ++i)
      nodes.push_back({node.count == 1 ? node.name : node.name + "-" + std::to_string(i), &node});
  return nodes;
}

std::string names_of(const std::vector<NamedNode>& all) {
  constexpr std::size_t most = 6;
  std::string text;
  for (std::size_t i = 0; i < std::min(all.size(), most); ++i)
    text += (i > 0 ? ", " : "") + all[i].name;
  return all.size() > most ? text + " and " + std::to_string(all.size() - most) + " more" : text;
}

std::vector<NamedNode> chosen_nodes(const Platform& platform,
                                    const std::vector<std::string>& names) {
  std::vector<NamedNode> all = all_nodes(platform);
  if (names.empty()) return all;
  std::vector<NamedNode> chosen;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(all, name, &NamedNode::name);
    if (found == all.end())
      throw InputError("--nodes: platform '" + platform.name + "' has no node '" + name +
                       "'; it has " + names_of(all));
    chosen.push_back(*found);
  }
  return chosen;
}

const PlatformGroup* group_named(const PlatformNode& node, const std::string& name) {
  for (const PlatformGroup& group : node.groups)
    if (name == group.name || (group.count > 1 && name.starts_with(group.name + "-")))
      return &group;
  return nullptr;
}

std::vector<PlacedDevice> places_on(const std::vector<NamedNode>& nodes, Devices devices) {
  std::vector<PlacedDevice> places;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const std::vector<PlatformGroup>& groups = nodes[n].node->groups;
    const auto of_kind = [&](bool gpu) {
      return [gpu](const PlatformGroup& group) { return gpu == (group.kind == DeviceKind::cuda); };
    };
    const bool has_gpu = std::ranges::any_of(groups, of_kind(true));
    const auto add = [&](const PlatformGroup& group) {
      const bool gpu = group.kind == DeviceKind::cuda;
      for (int unit = 0; unit < (gpu ? group.count : 1); ++unit)
        places.push_back(
            {n, &group,
             gpu && group.count > 1 ? group.name + "-" + std::to_string(unit) : group.name});
    };
    // Cores first, so that the order of the places is that of the ranks.
    for (const bool gpu : {false, true}) {
      const bool wanted = devices == Devices::both ||
                          gpu == (devices == Devices::best ? has_gpu : devices == Devices::cuda);
      if (wanted)
        for (const PlatformGroup& group : groups | std::views::filter(of_kind(gpu))) add(group);
    }
  }
  return places;
}

std::vector<std::vector<std::size_t>> ranks_of(const std::vector<PlacedDevice>& places) {
  std::vector<std::vector<std::size_t>> ranks;
  for (std::size_t p = 0; p < places.size(); ++p) {
    // The node's rank that has room for it: one without a GPU for a GPU, the first for cores.
    const auto found = std::ranges::find_if(ranks, [&](const std::vector<std::size_t>& rank) {
      return places[rank.front()].node == places[p].node &&
             (!places[p].gpu() ||
              std::ranges::none_of(rank, [&](std::size_t other) { return places[other].gpu(); }));
    });
    if (found == ranks.end())
      ranks.push_back({p});
    else
      found->push_back(p);
  }
  return ranks;
}

}  // namespace regatta::app
