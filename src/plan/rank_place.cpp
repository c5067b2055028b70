#include "plan/rank_place.h"

namespace regatta {
namespace {

std::vector<ChunkRange> chunk_ranges(const Plan& plan) {
  std::vector<ChunkRange> ranges;
  std::size_t first = 0;
  for (const PlanNode& node : plan.nodes) {
    std::size_t count = 0;
    for (const DeviceGroup& group : node.groups) count += group.chunks.size();
    ranges.push_back({first, count});
    first += count;
  }
  return ranges;
}

}  // namespace

RankPlace rank_place(const Plan& plan, std::size_t node, std::vector<int> sites) {
  RankPlace place;
  place.rank = static_cast<int>(node);
  place.ranks = static_cast<int>(plan.nodes.size());
  for (const Chunk& chunk : chunks_of(plan)) place.chunks.push_back(chunk.capacity);
  place.ranges = chunk_ranges(plan);
  place.update = plan.update;
  place.sites = sites.empty() ? std::vector<int>(plan.nodes.size(), 0) : std::move(sites);
  return place;
}

}  // namespace regatta
