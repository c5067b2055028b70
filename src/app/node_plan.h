// Plans for the nodes of a platform: the batch shared out among them, each computing its part.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/node_places.h"
#include "plan/make_plan.h"
#include "plan/plan_file.h"
#include "plan/recipe.h"
#include "platform/platform.h"
#include "sim/fleet_plan.h"

namespace regatta::app {

struct NodeOptions {
  std::vector<std::string> nodes;  // names; empty: all
  std::string shares = "speed";    // equal, speed, or samples of each group
  // Which devices of a node compute. None: its GPUs, or its cores where it has none; with shares by
  // speed also cores beside GPUs, if that is predicted to be faster.
  std::optional<Devices> devices = {};
  int ranks = 0;    // the first so many GPUs, or nodes without one; 0: all
  int workers = 0;  // cores of a node; 0: all it has
  NodeUpdate update = NodeUpdate::ring;
  PlanOptions plan;  // of a node, but for its workers
};

struct NodePlan {
  Plan plan;
  std::vector<GroupRole> roles;  // of all groups of the platform
};

// A rank for each GPU, and for the cores of each node that has none: a node of the plan. Cores that
// compute beside GPUs go with the first. Several ranks of one node bear its name. `profiles` are
// those that the platform names. Throws InputError.
NodePlan planned_over_nodes(const Graph& graph, const Recipe& recipe, const Platform& platform,
                            const sim::Profiles& profiles, const NodeOptions& options);
Plan plan_over_nodes(const Graph& graph, const Recipe& recipe, const Platform& platform,
                     const sim::Profiles& profiles, const NodeOptions& options);

// A device of the platform with its samples: a node's cores by their group's name, or a GPU: GROUP,
// or GROUP-0, GROUP-1, ... where the group has several.
struct DeviceShare {
  std::string node, group;
  std::int64_t samples = 0;
  std::string state = {};  // power state; empty: full speed
  int team = 0;            // cores that compute a chunk together; 0: as group_at() decides
};
// These devices compute, and no others. Devices of a node follow each other. `options.nodes` and
// `shares` are ignored. Throws InputError that names what the platform does not have.
Plan plan_for_devices(const Graph& graph, const Recipe& recipe, const Platform& platform,
                      const std::vector<DeviceShare>& devices, const NodeOptions& options);
// The slowness and watts of each worker of a plan's group on these cores of the platform.
std::vector<WorkerPower> powers_on(const PlatformGroup& cores, const DeviceGroup& group);
// A share on a place; cores that are not alone are one team unless it is said: fewer chunks meet.
DeviceGroup group_at(const PlacedDevice& place, std::int64_t share, bool alone, const Graph& graph,
                     const Recipe& recipe, const NodeOptions& options);

// Chunks for each worker of a node with unequal cores. With several, the last worker to end is late
// by less than one chunk.
inline constexpr std::int64_t chunks_of_a_worker = 4;
inline constexpr int most_loaders = 4;  // of a rank: CPU workers that only feed its GPU

// Groups that would get a share, if their number does not depend on costs.
std::int64_t groups_at_most(const Platform& platform, const NodeOptions& options);

// The part of the work's predicted time, from 0 to 1, whose cost nobody measured. The fleet follows
// a plan.
double guessed_share(const sim::PreparedFleet& fleet);

// By group of the plan: how long it computes before its gradients meet the others'. The fleet
// follows the plan.
std::vector<double> seconds_to_gradients(const Plan& plan, const sim::PreparedFleet& fleet);

// Sets the placement; a fixed order is that of playing each node's tasks. The fleet follows the
// plan with nothing fixed.
void place_over_nodes(Plan& plan, Placement placement, const sim::PreparedFleet& fleet);

// The batch goes through the stages' groups chunk by chunk, `options.plan.chunks` of them or four
// for each stage. Throws InputError that names what the platform does not have.
Plan plan_over_stages(const Graph& graph, const Recipe& recipe, const Platform& platform,
                      const std::vector<Stage>& stages, const NodeOptions& options);

// "a/cpu=0-3,b/gpu=4-9": which group owns which segments. Throws InputError that says how.
std::vector<Stage> parse_stages(const std::string& text);

// Throws InputError that names every group whose memory is too small, with its largest consumers
// and the largest share that fits.
void require_memory(const Graph& graph, const Plan& plan, const Recipe& recipe,
                    const Platform& platform);

}  // namespace regatta::app
