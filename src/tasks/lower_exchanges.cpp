#include "tasks/lower_exchanges.h"

namespace regatta {

void exchange_sums(ListBuilder& list, SegmentId s, std::uint32_t part, bool back) {
  Task& task =
      list.travelling_task({.phase = back ? Phase::exchange_gradient_sums : Phase::exchange_sums,
                            .segment = s,
                            .part = part});
  list.read_partials(task, s, list.partials_of(meeting_after(list.program_of(s), part, back)));
  list.touch(task, list.gathered_sums(s), Mode::read_write);
}

void exchange_group_sums(ListBuilder& list, SegmentId s) {
  Task& task = list.travelling_task({.phase = Phase::exchange_group_sums, .segment = s});
  list.read_partials(task, s);
  list.touch(task, list.gathered_sums(s), Mode::read_write);
}

std::uint32_t receive_running_sum(ListBuilder& list, BucketId b) {
  const Bucket& bucket = list.blueprint().buckets[b.value];
  Task& task =
      list.travelling_task({.phase = Phase::running_sum, .segment = bucket.segment, .bucket = b});
  const std::uint32_t sum = list.buffer(BufferKind::running_sum, b.value, 0, bucket.bytes);
  list.touch(task, sum, Mode::write);
  return sum;
}

void exchange_gradient(ListBuilder& list, BucketId b) {
  const SegmentId segment = list.blueprint().buckets[b.value].segment;
  Task& task = list.travelling_task({.phase = Phase::exchange, .segment = segment, .bucket = b});
  list.touch(task, list.gradient(b, 0), Mode::read_write);
}

void exchange_results(ListBuilder& list) {
  Task& task = list.travelling_task({.phase = Phase::exchange_results});
  for (const Chunk& chunk : list.blueprint().chunks)
    list.touch(task, list.delivered(chunk), Mode::read);
}

}  // namespace regatta
