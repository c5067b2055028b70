// Adds the tasks that the communicator's thread does: each sends this rank's part to the other
// ranks and ends when theirs has arrived.
#pragma once

#include "tasks/list_builder.h"

namespace regatta {

// Exchanges the sums of all ranks' chunks at the meeting point after this part of the segment.
void exchange_sums(ListBuilder& list, SegmentId s, std::uint32_t part, bool back);
// Exchanges the sums of all ranks' groups of samples, for running statistics.
void exchange_group_sums(ListBuilder& list, SegmentId s);
// Receives the sum of a bucket's gradient over the ranks before this one. Returns its buffer.
std::uint32_t receive_running_sum(ListBuilder& list, BucketId b);
// Sums a bucket's gradient over all ranks.
void exchange_gradient(ListBuilder& list, BucketId b);
// Exchanges the losses of all samples, and when evaluating also logits.
void exchange_results(ListBuilder& list);

}  // namespace regatta
