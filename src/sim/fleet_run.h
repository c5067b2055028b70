// A whole fleet in one world: the child's part of a simulation.
#pragma once

#include <string>

#include "sim/fleet_map.h"
#include "sim/simulate.h"
#include "sim/wire_use.h"
#include "tasks/node_engine.h"

namespace regatta::sim {

// A rank's part in an exchange.
struct ExchangeTimes {
  std::int64_t step = 0;
  std::uint32_t rank = 0;
  ExchangeId id{};
  double start = 0, end = 0;  // the rank has its own part; the rank has all it needs
};

struct ReplicaOutcome {
  std::vector<double> step_ends;   // by step, since the beginning of the replica
  std::vector<double> joules;      // by step and host, since the beginning of the replica
  std::vector<TaskEvents> events;  // by rank, step and task; of the first replica
  std::vector<double> bytes;       // sent in exchanges in all steps
  std::vector<WireUse> traffic;    // of the first replica
  // Exchanges of the first replica, if SimulationOptions asks for them; by step, exchange, rank.
  std::vector<ExchangeTimes> exchanges;
};

// The bytes that replicas_of() reads.
std::string run_fleet(const Fleet& fleet, const FleetMap& map, const SimulationOptions& options);
std::vector<ReplicaOutcome> replicas_of(const std::string& bytes, int replicas);

}  // namespace regatta::sim
