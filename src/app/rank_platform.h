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

// As the metadata of a record hold it. Called by all ranks together, with nothing else to do.
std::string measure_network(Ranks& ranks);
inline constexpr const char* network_key = "ranks";
// Throws InputError if a record has none.
RankNetwork network_in(const trace::Record& record);

// A node for each of the plan's, with this machine's costs. Ranks near each other (sites_of) hang
// on one switch; several such switches on another.
Platform platform_of_ranks(const Plan& plan, const RankNetwork& network);

}  // namespace regatta::app
