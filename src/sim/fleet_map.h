// Where every rank, device and memory of a fleet is in the simulated world.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "sim/simulate.h"
#include "sim/world.h"
#include "tasks/node_engine.h"

namespace regatta::sim {

// Made once, and known to the process that asks for a simulation and to the one that runs it.
class FleetMap {
 public:
  explicit FleetMap(const Fleet& fleet);

  const Wiring& wiring() const { return wiring_; }
  const std::vector<NodeWork>& works() const { return works_; }
  const NodeWork& work(const Rank& rank) const {
    return works_[static_cast<std::size_t>(rank.kind)];
  }
  bool several() const { return several_; }
  std::vector<Endpoint> endpoints() const;  // by rank: where its gradients are

  struct HostName {
    int node = 0;
    std::string group;
  };
  const std::vector<World::Host>& hosts() const { return hosts_; }
  const std::vector<HostName>& host_names() const { return host_names_; }
  double unused_watts() const { return unused_watts_; }  // of the nodes that no rank is on
  int host_of(int node, Device device) const;
  // Adds what its memories need to the routes.
  RankHosts hosts_of_rank(const Rank& rank, std::vector<std::vector<int>>& routes) const;

 private:
  void require_same_buckets() const;
  Endpoint memory_of(const Rank& rank, int memory) const;

  const Fleet& fleet_;
  Wiring wiring_;
  bool several_;
  std::vector<TaskList> lists_;  // split where gradients are exchanged
  std::vector<NodeWork> works_;
  std::vector<World::Host> hosts_;
  std::vector<HostName> host_names_;
  double unused_watts_ = 0;
  std::map<std::tuple<int, int, int>, int> numbers_;  // by node, group and unit
};

}  // namespace regatta::sim
