// A whole fleet in one world: the child's part of a simulation.
#pragma once

#include <string>

#include "sim/crew.h"
#include "sim/simulate.h"
#include "sim/wire_use.h"

namespace regatta::sim {

// Where everything of a fleet is in the world, known to parent and child alike.
class Harbour {
 public:
  explicit Harbour(const Fleet& fleet);

  const Wiring& wiring() const { return wiring_; }
  const std::vector<Work>& works() const { return works_; }
  const Work& work(const Rank& rank) const { return works_[static_cast<std::size_t>(rank.kind)]; }
  bool several() const { return several_; }
  std::vector<Endpoint> endpoints() const;  // by rank: where its gradients are

  struct HostName {
    int node = 0;
    std::string group;
  };
  const std::vector<World::Host>& hosts() const { return hosts_; }
  const std::vector<HostName>& host_names() const { return host_names_; }
  int host_of(int node, Device device) const;
  // Adds what its memories need to the routes.
  Berth berth(const Rank& rank, std::vector<std::vector<int>>& routes) const;

 private:
  void require_same_buckets() const;
  Endpoint memory_of(const Rank& rank, int memory) const;

  const Fleet& fleet_;
  Wiring wiring_;
  bool several_;
  std::vector<TaskList> lists_;  // split where gradients are exchanged
  std::vector<Work> works_;
  std::vector<World::Host> hosts_;
  std::vector<HostName> host_names_;
  std::map<std::tuple<int, int, int>, int> numbers_;  // by node, group and unit
};

struct ReplicaOutcome {
  std::vector<double> step_ends;   // by step, since the beginning of the replica
  std::vector<double> joules;      // by step and host, since the beginning of the replica
  std::vector<Happened> happened;  // by rank, step and task; of the first replica
  std::vector<double> bytes;       // sent in exchanges in all steps
  std::vector<WireUse> traffic;    // of the first replica
};

// The bytes that replicas_of() reads.
std::string run_fleet(const Fleet& fleet, const Harbour& harbour, const SimulationOptions& options);
std::vector<ReplicaOutcome> replicas_of(const std::string& bytes, int replicas);

}  // namespace regatta::sim
