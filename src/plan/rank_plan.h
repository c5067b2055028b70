// Plans for several ranks on which each computes a share of the batch.
#pragma once

#include <string>
#include <vector>

#include "plan/make_plan.h"

namespace regatta {

struct RankResources {
  std::string name;  // of the plan's node
  int workers = 1;   // see PlanOptions
  Layout layout = Layout::blocked16;
};

// A node for each rank. `options` are those of a rank but for its workers and layout. With
// `deterministic` the chunks are those of a single process, each rank has whole ones that follow
// each other, and a running sum is passed along. Throws InputError if the shares cannot be had.
Plan plan_over_ranks(const Graph& graph, const Recipe& recipe, const PlanOptions& options,
                     const std::vector<RankResources>& ranks,
                     const std::vector<std::int64_t>& shares, NodeUpdate update);

// Every reason why this plan cannot send gradients as the recipe wants them rounded; empty if it
// can.
std::vector<std::string> wire_hindrances(const Plan& plan, const Recipe& recipe);

// The chunks of a single process with --deterministic, which do not depend on who computes them.
// Throws InputError if they are fewer than the ranks.
std::vector<std::int64_t> canonical_chunks(const Graph& graph, const Recipe& recipe,
                                           const PlanOptions& options, std::size_t ranks);

// The shares nearest to those wanted that are whole canonical chunks, at least one for each rank.
std::vector<std::int64_t> whole_chunk_shares(const std::vector<std::int64_t>& chunks,
                                             const std::vector<std::int64_t>& wanted);

}  // namespace regatta
