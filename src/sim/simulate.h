// Plays steps of a plan on a platform, on SimGrid, and gives the trace that a run would have left.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/exchange.h"
#include "tasks/costs.h"
#include "trace/trace.h"

namespace regatta::sim {

// What ranks of one kind do. All three must stay.
struct RankKind {
  const Blueprint* blueprint = nullptr;
  const TaskList* list = nullptr;  // one step, lowered from the blueprint
  const TaskCosts* costs = nullptr;
};

// Which of a node's devices a group of the plan is.
struct Device {
  int group = 0;  // in PlatformNode::groups
  int unit = 0;   // of GPUs: which one
};

// A replica of the network. With several, each computes its own batch and their gradients are
// exchanged bucket by bucket. A pipeline is one replica, its groups are on nodes of their own.
struct Rank {
  int kind = 0;                 // in Fleet::kinds
  int node = 0;                 // counted as Wiring counts
  std::vector<Device> devices;  // by GroupId
  std::vector<int> nodes = {};  // by GroupId, of a pipeline; empty: all are on `node`

  int node_of(std::size_t group) const { return group < nodes.size() ? nodes[group] : node; }
};

struct Fleet {
  Platform platform;
  std::vector<RankKind> kinds;
  std::vector<Rank> ranks;
  NodeUpdate update = NodeUpdate::ring;
  // A server sends when it has all buckets of the step, not one by one: as where parameters are
  // fetched when a step begins.
  bool server_sends_last = false;
};

struct SimulationOptions {
  std::int64_t steps = 6;
  int replicas = 1;  // each after the first draws costs from their intervals
  std::uint64_t seed = 1;
  // The thread that submits has no CPU of its own.
  bool crowded = false;
  // With more ranks than this, exchanges are aggregated per link.
  int message_ranks = 64;
  // The record has lanes with the exchanges of every rank, as records of real runs have.
  bool record_exchanges = false;
};

struct GroupUse {
  int rank = 0;
  std::size_t pool = 0;  // groups of its plan by GroupId, then those that only load
  std::string node, group;
  int workers = 0;
  double busy_s = 0;                    // of all its workers, in a step
  std::optional<double> energy_j = {};  // of its devices in a step; none: they are another group's
};

// What devices of one group of the platform draw in a step, by the platform's watts.
struct GroupEnergy {
  std::string node, group;  // as the platform names them, however many nodes are alike
  int devices = 0;
  double idle_j = 0, tasks_j = 0;  // joules of being powered, and of working beyond that
};

struct Simulated {
  trace::Record record;  // of the first replica
  // By replica, in a step, once the pipeline has filled: the first third of the steps is left out.
  std::vector<double> step_s, energy_j;
  std::vector<GroupUse> groups;  // in the first replica
  // In the first replica; the sum is energy_j. Nodes without a rank are one row without a group.
  std::vector<GroupEnergy> energy;
  std::int64_t tasks = 0;      // of a replica
  double exchanged_bytes = 0;  // sent in a step by all ranks, or stages, together
};

// In a process of its own: SimGrid's engine cannot be made twice, and ends the process on a
// mistake. Throws Error if that process fails.
Simulated simulate(const Fleet& fleet, const SimulationOptions& options);

}  // namespace regatta::sim
