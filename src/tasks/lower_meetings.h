// Where chunks meet inside a step: what tasks access there, and the tasks that merge their sums.
#pragma once

#include "tasks/list_builder.h"

namespace regatta {

// Adds to `task` what one of its instructions accesses of sums and statistics.
void touch_meeting(ListBuilder& list, Task& task, SegmentId s, const Instruction& step,
                   const Chunk& chunk);
// Adds the task that merges all chunks' sums after this part of the segment; `phase`: combine in
// forward, combine_gradient in backward.
void meet(ListBuilder& list, SegmentId s, std::uint32_t part, Phase phase);
// Adds the task that brings running statistics to the mean over all groups of samples. No other
// task of the step waits for it.
void track(ListBuilder& list, SegmentId s);

}  // namespace regatta
