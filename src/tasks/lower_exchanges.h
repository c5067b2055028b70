// The tasks that the thread of the communicator does: each sends what this rank has to the others,
// and ends when theirs has come.
#pragma once

#include "tasks/list_builder.h"

namespace regatta {

// The sums of all ranks' chunks at the meeting point after this part of the segment.
void exchange_sums(ListBuilder& list, SegmentId s, std::uint32_t part, bool back);
// The sums of all ranks' groups of samples, for running statistics.
void exchange_group_sums(ListBuilder& list, SegmentId s);
// The sum of a bucket's gradient over the ranks before this one comes in. Returns its buffer.
std::uint32_t receive_running_sum(ListBuilder& list, BucketId b);
// A bucket's gradient is summed over all ranks.
void exchange_gradient(ListBuilder& list, BucketId b);
// All samples' losses, and on evaluating logits.
void exchange_results(ListBuilder& list);

}  // namespace regatta
