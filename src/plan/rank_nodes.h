// Which rank of a run carries out which node of a plan for several.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace regatta {

struct RankNodes {
  std::vector<std::size_t> nodes;  // by rank: the number of its node in the plan
  bool by_host = false;            // nodes bear the names of hosts; else they go by their order
};

// Where the plan's nodes are named like the ranks' hosts (`hosts` by rank; a name without its
// domain will do), the i-th rank on a host gets the i-th node of its name. Where no node is named
// like any host, ranks get the nodes in order. Throws InputError for any other number of ranks than
// the plan has nodes, and for nodes whose host has too few or too many ranks.
RankNodes nodes_of_ranks(const Plan& plan, const std::vector<std::string>& hosts);

// The plan with its nodes in the order of ranks. Throws InputError if it is deterministic and other
// ranks would change the order in which chunks are added.
Plan in_rank_order(const Plan& plan, const RankNodes& ranks);

// Every reason why no ranks could carry out this plan for several nodes.
std::vector<std::string> rank_hindrances(const Plan& plan);

}  // namespace regatta
