// --recompute: which segments are computed again in backward, so that a batch fits into memory.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "platform/limits.h"
#include "train/job.h"

namespace regatta {

// What is left of this machine's memories for a plan with these options: the node's, and the GPU's
// if it computes.
struct MemoryLeft {
  std::vector<MemoryLimit> node;
  std::optional<MemoryLimit> gpu = {};
};
MemoryLeft memory_left(const PlanOptions& options);

// With `auto`, the first cut of the network, from few segments to many, by which the job fits, and
// of its segments as few as needed, from the first on; if none fits, the one that needs the least.
// Nothing where all values can be kept. With any choice, the cut and the kind of backward that it
// needs are fixed in `options`. Returns a line for the user of what `auto` has chosen, or nothing.
// Throws InputError for `auto` with a split backward, which needs all values kept.
std::string settle_recomputation(const TrainJob& job, PlanOptions& options, const MemoryLeft& left);

// Runs `check`, which throws InputError if a plan with these options does not fit. Its message then
// also says whether --recompute auto would make it fit; for commands that have this flag.
void suggest_recompute(const TrainJob& job, const PlanOptions& options,
                       const std::function<MemoryLeft()>& left, const std::function<void()>& check);

}  // namespace regatta
