// From a plan to a fleet that can be simulated.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plan/make_plan.h"
#include "sim/device_costs.h"
#include "sim/simulate.h"

namespace regatta::sim {

// By the name a platform's costs give; null: nothing was measured.
using Profiles = std::map<std::string, std::shared_ptr<const Profile>>;

// A fleet and everything it points to.
class PreparedFleet {
 public:
  PreparedFleet(Graph graph, Recipe recipe, Platform platform, Profiles profiles);

  // The ranks are the plan's nodes, several of which may be on one node of the platform; a pipeline
  // is one rank. Nodes are found on the platform by name, their groups by name or else by kind; a
  // plan of one node goes to the first. Chunks of several ranks meet where the recipe wants it.
  // Throws InputError that names what is not there.
  void follow(const Plan& plan);

  void server_sends_last() { fleet_.server_sends_last = true; }  // see Fleet

  const Fleet& fleet() const { return fleet_; }
  int threads() const;                           // of the first rank's workers
  std::int64_t batch() const { return batch_; }  // of all ranks
  bool estimated() const { return estimated_; }  // costs are not measured ones

  struct Memory {
    std::string group;
    std::size_t bytes = 0, room = 0;
  };
  // By group of the plan, of a rank of this kind.
  std::vector<Memory> memory(int kind) const;

 private:
  struct Kind {
    // A profile for each stage of a pipeline, else one.
    Kind(const Graph& graph, const Recipe& recipe, const Plan& plan,
         std::vector<std::shared_ptr<const Profile>> profiles, bool several_ranks);
    Blueprint blueprint;
    std::vector<Blueprint> stages;  // by group, of a pipeline
    TaskList list;
    std::unique_ptr<TaskCosts> measured;
    std::unique_ptr<DeviceCosts> costs;
    std::vector<std::size_t> rooms;
  };
  int kind_of(const std::string& key, const Plan& plan,
              const std::vector<const PlatformGroup*>& devices, bool several_ranks);
  std::shared_ptr<const Profile> profile_of(const std::vector<const PlatformGroup*>& devices) const;
  // `taken`: units of the node's GPUs that other ranks have, by group.
  std::vector<Device> devices_for(const Plan& plan, const PlatformNode& node,
                                  std::vector<int>& taken) const;
  int node_for(const Plan& plan, std::size_t n) const;
  void follow_stages(const Plan& plan);

  Graph graph_;
  Recipe recipe_;
  Profiles profiles_;
  Wiring wiring_;
  std::map<std::string, int> nodes_by_name_;
  Fleet fleet_;
  std::vector<std::unique_ptr<Kind>> kinds_;
  std::map<std::string, int> numbers_;  // of kinds, by key
  std::int64_t batch_ = 0;
  bool estimated_ = false;
};

}  // namespace regatta::sim
