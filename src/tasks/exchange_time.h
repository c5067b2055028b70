// How long the ranks take to add a bucket up, by the messages of tasks/exchange_rounds.h and the
// links between them.
#pragma once

#include <vector>

#include "platform/platform.h"
#include "tasks/exchange_rounds.h"

namespace regatta {

// By rank and rank.
using RankLinks = std::vector<std::vector<LinkSpeed>>;

// Seconds from the moment when all ranks have their gradient until all have the sum. `bytes`: of
// the whole gradient as it travels (Blueprint::wire_bytes). Messages that a rank sends, or
// receives, at the same time share its link.
double exchange_seconds(NodeUpdate update, const std::vector<int>& sites, const RankLinks& links,
                        double bytes);

// No way to add up gradients that are so many bytes in messages takes less: every rank, and every
// site, must send and receive as much once, and all together must send 2 (ranks - 1) times as much.
double exchange_bound(const std::vector<int>& sites, const RankLinks& links, double bytes);

// The way with the shortest time for all of these buckets one after the other. MPI's own is not
// among them: which algorithm it takes is not known.
NodeUpdate fastest_update(const std::vector<int>& sites, const RankLinks& links,
                          const std::vector<double>& bucket_bytes);

// Ranks that are near each other: on one machine, or if each has a machine of its own, those
// between which links are much faster than to others.
std::vector<int> sites_of(const std::vector<int>& machines, const RankLinks& links);

}  // namespace regatta
