// The machines of a run over several ranks as a platform, with the links as the ranks measured
// them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "tasks/exchange_time.h"
#include "trace/trace.h"
#include "train/ranks.h"

namespace regatta::app {

struct RankNetwork {
  RankLinks links;
  std::vector<int> machines;  // by rank, see Ranks
  std::vector<int> cpus;      // by rank, that it may use
};

// Measures links and CPUs; returns them as a record's metadata hold them. All ranks must call it
// together, while nothing else runs.
std::string measure_network(Ranks& ranks);
inline constexpr const char* network_key = "ranks";
// The network in a record's metadata. Throws InputError if it has none.
RankNetwork network_in(const trace::Record& record);

// A platform with a node for each node of the plan, with this machine's costs. Ranks of one site
// (sites_of) are linked to a switch; the switches of several sites are linked to another one.
Platform platform_of_ranks(const Plan& plan, const RankNetwork& network);

}  // namespace regatta::app
