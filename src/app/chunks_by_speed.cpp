#include "app/chunks_by_speed.h"

#include <algorithm>
#include <array>
#include <map>

#include "plan/make_plan.h"

namespace regatta::app {
namespace {

// How many times as long slow workers are taken to need, for chunks that are smaller than what
// balances costs. Simulation decides among them.
constexpr std::array handicaps{1.1, 1.2, 1.35, 1.5, 1.75, 2.0};

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

  const auto try_out = [&](std::size_t node, const ChunkSizes& sizes) {
    made.plan.nodes[node].groups.front().chunks = sizes;
    sim::PreparedFleet fleet(graph, recipe, platform, profiles);
    fleet.follow(made.plan);
    const auto& [blueprint, list, costs] =
        fleet.fleet().kinds[static_cast<std::size_t>(fleet.fleet().ranks[node].kind)];
    return tried_shares(*blueprint, *list, *costs);
  };
  const auto search = [&](std::size_t node) {
    return search_shares(
        made.plan.nodes[node].groups.front().chunks, granule_of(graph),
        [&](const ChunkSizes& sizes) { return std::optional(try_out(node, sizes)); });
  };

  if (plan.nodes.size() > 1) {
    // By the node's kind while all chunks are equal: nodes that are alike share alike.
    std::map<int, TriedShares> known;
    sim::PreparedFleet equal(graph, recipe, platform, profiles);
    equal.follow(made.plan);
    for (const std::size_t n : unequal) {
      const auto [found, fresh] = known.try_emplace(equal.fleet().ranks[n].kind);
      if (fresh) found->second = best_shares(search(n));
      made.shares = found->second;
      made.plan.nodes[n].groups.front().chunks = made.shares.chunks;
    }
    return {std::move(made)};
  }

  std::vector<TriedShares> all = search(0);
  const TriedShares best = best_shares(all);
  const std::vector<WorkerPower> powers = made.plan.nodes.front().groups.front().powers;
  const double fastest = std::ranges::min(powers, {}, &WorkerPower::slow).slow;
  for (const double handicap : handicaps) {
    std::vector<double> seconds = best.seconds;
    for (std::size_t w = 0; w < seconds.size(); ++w)
      if (powers[w].slow > fastest) seconds[w] *= handicap;
    const ChunkSizes sizes = balanced_chunks(best.chunks, seconds, granule_of(graph));
    if (std::ranges::find(all, sizes, &TriedShares::chunks) == all.end())
      all.push_back(try_out(0, sizes));
  }
  std::vector<SpeedChunks> plans;
  for (TriedShares& tried : all) {
    made.plan.nodes.front().groups.front().chunks = tried.chunks;
    made.shares = std::move(tried);
    plans.push_back(made);
  }
  return plans;
}

}  // namespace regatta::app
