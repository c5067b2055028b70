// Where one rank stands in a plan for several: a rank carries out one node of it.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace regatta {

// Chunks of one rank among those of the whole batch.
struct ChunkRange {
  std::size_t first = 0, count = 0;
};

struct RankPlace {
  int rank = 0, ranks = 1;
  // Samples of each chunk of a full batch, of all ranks in order. A rank's chunks are consecutive.
  std::vector<std::int64_t> chunks;
  std::vector<ChunkRange> ranges;  // by rank
  NodeUpdate update = NodeUpdate::ring;
  std::vector<int> sites;  // by rank: those of one number are near each other

  bool several() const { return ranks > 1; }
  const ChunkRange& own() const { return ranges[static_cast<std::size_t>(rank)]; }
};

// The place of the node with this number. Without sites, all ranks are of one site.
RankPlace rank_place(const Plan& plan, std::size_t node, std::vector<int> sites = {});

}  // namespace regatta
