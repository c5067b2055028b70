// Which rank of a run carries out which node of a plan for several nodes.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace regatta {

struct RankNodes {
  std::vector<std::size_t> nodes;  // by rank: index into Plan::nodes
  bool by_host = false;            // matched by host names; false: by the order of nodes
};

// `hosts`: the host name of each rank. If a node has the name of any host, with or without the
// domain, nodes are matched by name: the i-th rank on a host gets the i-th node of that name.
// Otherwise ranks get the nodes in order. Throws InputError if there are not as many ranks as
// nodes, or if a name has not as many nodes as ranks.
RankNodes nodes_of_ranks(const Plan& plan, const std::vector<std::string>& hosts);

// The plan with its nodes in the order of ranks. Throws InputError if the plan is deterministic and
// this changes the order in which the gradients of chunks are added.
Plan in_rank_order(const Plan& plan, const RankNodes& ranks);

// Every reason why ranks cannot carry out this plan for several nodes; empty if they can.
std::vector<std::string> rank_hindrances(const Plan& plan);

}  // namespace regatta
