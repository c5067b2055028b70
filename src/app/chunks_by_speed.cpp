#include "app/chunks_by_speed.h"

#include <algorithm>
#include <map>

#include "plan/make_plan.h"

namespace regatta::app {
namespace {

// The one group of a node, if a chunk for each of its workers can make up for their speeds.
DeviceGroup* unequal_group(PlanNode& node, const Graph& graph) {
  if (node.groups.size() != 1) return nullptr;
  DeviceGroup& group = node.groups.front();
  const bool alike = std::ranges::all_of(group.powers, [&](const WorkerPower& each) {
    return each.slow == group.powers.front().slow;
  });
  if (alike || granules_of(graph, share_of(group)) < group.workers) return nullptr;
  return &group;
}

}  // namespace

std::vector<SpeedChunks> chunks_by_speed(const Graph& graph, const Recipe& recipe,
                                         const Platform& platform, const sim::Profiles& profiles,
                                         const Plan& plan) {
  if (!plan.stages.empty()) return {};
  SpeedChunks made{plan, {}};
  made.plan.placement = Placement::hybrid;
  made.plan.order.clear();
  made.plan.pace_s = 0;
  std::vector<std::size_t> unequal;  // nodes
  for (std::size_t n = 0; n < plan.nodes.size(); ++n)
    if (DeviceGroup* const group = unequal_group(made.plan.nodes[n], graph)) {
      group->chunks = equal_chunks(share_of(*group), group->workers, granule_of(graph));
      group->lanes = group->workers;
      unequal.push_back(n);
    }
  if (unequal.empty()) return {};

  // By the node's kind while all chunks are equal: nodes that are alike share alike.
  std::map<int, std::vector<TriedShares>> known;
  sim::PreparedFleet equal(graph, recipe, platform, profiles);
  equal.follow(made.plan);
  for (const std::size_t n : unequal) {
    ChunkSizes& chunks = made.plan.nodes[n].groups.front().chunks;
    const auto [found, fresh] = known.try_emplace(equal.fleet().ranks[n].kind);
    if (fresh)
      found->second = search_shares(chunks, granule_of(graph), [&](const ChunkSizes& sizes) {
        chunks = sizes;
        sim::PreparedFleet fleet(graph, recipe, platform, profiles);
        fleet.follow(made.plan);
        const auto& [blueprint, list, costs] =
            fleet.fleet().kinds[static_cast<std::size_t>(fleet.fleet().ranks[n].kind)];
        return std::optional(tried_shares(*blueprint, *list, *costs));
      });
    made.shares = best_shares(found->second);
    chunks = made.shares.chunks;
  }
  if (plan.nodes.size() > 1) return {std::move(made)};
  std::vector<SpeedChunks> all;
  for (const TriedShares& tried : known.begin()->second) {
    made.shares = tried;
    made.plan.nodes.front().groups.front().chunks = tried.chunks;
    all.push_back(made);
  }
  return all;
}

}  // namespace regatta::app
