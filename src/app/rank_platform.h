// The machines of a run over several ranks as a platform, with the links as the ranks measured
// them.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "sim/fleet_plan.h"
#include "tasks/exchange_time.h"
#include "trace/trace.h"
#include "train/ranks.h"

namespace regatta::app {

struct RankNetwork {
  RankLinks links;
  std::vector<int> machines;  // by rank, see Ranks
  std::vector<int> cpus;      // by rank, that it may use
  // By rank: its profile when the run began, as a file in the run folder; "" if nothing was
  // measured there with so many CPUs.
  std::vector<std::string> profiles = {};

  // The profiles by the names that platform_of_ranks() gives them. Ranks without one have `other`,
  // named "here".
  sim::Profiles profiles_in(const std::filesystem::path& run,
                            std::shared_ptr<const Profile> other) const;
  bool all_have_profiles() const;
};

// Measures links and CPUs, and on the first rank writes the profiles of all ranks to `run`.
// Returns all of it as a record's metadata hold it. All ranks must call it together, while nothing
// else runs.
std::string measure_network(Ranks& ranks, const std::filesystem::path& run);
inline constexpr const char* network_key = "ranks";
// The network in a record's metadata. Throws InputError if it has none.
RankNetwork network_in(const trace::Record& record);

// A platform with a node for each node of the plan. Ranks of one site
// (sites_of) are linked to a switch; the switches of several sites are linked to another one.
Platform platform_of_ranks(const Plan& plan, const RankNetwork& network);

}  // namespace regatta::app
