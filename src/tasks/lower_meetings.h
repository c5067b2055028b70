// Where chunks meet inside a step: what tasks access there, and the tasks that merge their sums.
#pragma once

#include "tasks/list_builder.h"

namespace regatta {

// Adds to `task` what one of its instructions accesses of sums and statistics.
void touch_meeting(ListBuilder& list, Task& task, SegmentId s, const Instruction& step,
                   const Chunk& chunk);
// All chunks' sums are merged after this part of the segment; `phase` says whether on the way
// forward (combine) or back (combine_gradient).
void meet(ListBuilder& list, SegmentId s, std::uint32_t part, Phase phase);
// Running statistics take the mean over all groups of samples. Nothing of this step waits for it.
void track(ListBuilder& list, SegmentId s);

}  // namespace regatta
