// What computes on a platform's nodes: cores and GPUs that may get a share of the batch, and the
// ranks they form.
#pragma once

#include <string>
#include <vector>

#include "platform/platform.h"

namespace regatta::app {

// A node, counted one by one: NAME-0, NAME-1, ... where a platform has several alike.
struct NamedNode {
  std::string name;
  const PlatformNode* node;
};
std::vector<NamedNode> all_nodes(const Platform& platform);
std::string names_of(const std::vector<NamedNode>& all);  // the first few, for an error
// The nodes with these names; all nodes if no names are given. Throws InputError.
std::vector<NamedNode> chosen_nodes(const Platform& platform,
                                    const std::vector<std::string>& names);

// The platform's group that a plan's group is of; null: none.
const PlatformGroup* group_named(const PlatformNode& node, const std::string& name);

// A node's cores, or one of its GPUs.
struct PlacedDevice {
  std::size_t node = 0;  // of those chosen
  const PlatformGroup* group = nullptr;
  std::string name;  // in the plan
  int team = 0;      // cores that compute a chunk together; 0: not said

  bool gpu() const { return group->kind == DeviceKind::cuda; }
};

// Which of a node's devices compute.
enum class Devices {
  best,  // its GPUs, or its cores where it has none
  cpu,
  cuda,
  both,
};
// Node by node, cores before GPUs.
std::vector<PlacedDevice> places_on(const std::vector<NamedNode>& nodes, Devices devices);

// Positions of places that are one process: a node's cores and one GPU at most. Cores go with the
// node's first GPU. In the order of the places.
std::vector<std::vector<std::size_t>> ranks_of(const std::vector<PlacedDevice>& places);

}  // namespace regatta::app
