#include "tasks/lower_updates.h"

#include "tasks/lower_exchanges.h"

namespace regatta {

void UpdateLowering::reduce_and_update(BucketId b) {
  const Bucket& bucket = blueprint_.buckets[b.value];
  const bool gather = blueprint_.plan.gather_phases;
  const int slots = gradient_slots(blueprint_.plan);
  const bool continues = blueprint_.adds_running_sum();
  std::uint32_t running_sum = 0;
  if (continues) running_sum = receive_running_sum(list_, b);
  for (std::uint32_t g = 0; g < groups_of(blueprint_.plan).size(); ++g)
    if (sums_own_slots(blueprint_, GroupId{g})) sum_slots_of(GroupId{g}, b);
  if (slots > 1 || continues) {
    Task& task = list_.task_for(blueprint_.owner, false);
    task.actions.push_back({.phase = Phase::reduce,
                            .segment = bucket.segment,
                            .bucket = b,
                            .group = blueprint_.owner});
    task.priority = 1;
    list_.touch(task, list_.gradient(b, 0), Mode::read_write);
    for (std::uint32_t g = 0; g < groups_of(blueprint_.plan).size(); ++g) {
      const SlotRange range = slots_of(blueprint_, GroupId{g});
      if (sums_own_slots(blueprint_, GroupId{g}))
        list_.touch(task, group_sum(b, GroupId{g}), Mode::read);
      else
        for (int slot = range.first; slot < range.first + range.count; ++slot)
          if (slot > 0 && slot < slots) list_.touch(task, list_.gradient(b, slot), Mode::read);
    }
    if (continues) list_.touch(task, running_sum, Mode::read);
  }
  if (list_.several()) exchange_gradient(list_, b);
  const bool join = gather && slots > 1 && !list_.several();
  if (clips()) {
    measure(b, join);
  } else {
    step(b, join);
    pack(b, gather);
  }
}

std::uint32_t UpdateLowering::group_sum(BucketId b, GroupId group) {
  return list_.buffer(BufferKind::group_sum, b.value, group.value,
                      blueprint_.buckets[b.value].bytes);
}

void UpdateLowering::sum_slots_of(GroupId group, BucketId b) {
  Task& task = list_.task_for(group, false);
  task.actions.push_back({.phase = Phase::reduce,
                          .segment = blueprint_.buckets[b.value].segment,
                          .bucket = b,
                          .group = group});
  task.priority = 1;
  const SlotRange range = slots_of(blueprint_, group);
  for (int slot = range.first; slot < range.first + range.count; ++slot)
    list_.touch(task, list_.gradient(b, slot), Mode::read);
  list_.touch(task, group_sum(b, group), Mode::write);
}

std::uint32_t UpdateLowering::squares(BucketId b) {
  return list_.buffer(BufferKind::squares, b.value, 0, sizeof(double));
}

std::uint32_t UpdateLowering::clip() { return list_.buffer(BufferKind::clip, 0, 0, sizeof(float)); }

void UpdateLowering::measure(BucketId b, bool join) {
  Task& task = list_.task_for(blueprint_.owner, join);
  task.actions.push_back(
      {.phase = Phase::measure, .segment = blueprint_.buckets[b.value].segment, .bucket = b});
  task.priority = 1;
  list_.touch(task, list_.gradient(b, 0), Mode::read);
  list_.touch(task, squares(b), Mode::write);
}

void UpdateLowering::clipped_updates() {
  Task& task = list_.task_for(blueprint_.owner, false);
  task.actions.push_back({.phase = Phase::clip});
  task.priority = 1;
  for (std::uint32_t b = 0; b < blueprint_.buckets.size(); ++b)
    list_.touch(task, squares(BucketId{b}), Mode::read);
  list_.touch(task, clip(), Mode::write);
  // First buckets first, because the next forward begins with them.
  for (std::uint32_t b = 0; b < blueprint_.buckets.size(); ++b) {
    step(BucketId{b}, false);
    pack(BucketId{b}, blueprint_.plan.gather_phases);
  }
}

void UpdateLowering::step(BucketId b, bool join) {
  const Bucket& bucket = blueprint_.buckets[b.value];
  Task& task = list_.task_for(blueprint_.owner, join);
  task.actions.push_back({.phase = Phase::update, .segment = bucket.segment, .bucket = b});
  task.priority = 1;
  list_.touch(task, list_.gradient(b, 0), Mode::read);
  list_.touch(task, list_.parameters(b), Mode::read_write);
  for (int index = 0; index < most_moments; ++index)
    if (keeps_moment(blueprint_.optimizer, index))
      list_.touch(task,
                  list_.buffer(BufferKind::moment, b.value, static_cast<std::uint32_t>(index),
                               bucket.bytes),
                  Mode::read_write);
  if (blueprint_.optimizer.ema > 0)
    list_.touch(task, list_.buffer(BufferKind::average, b.value, 0, bucket.bytes),
                Mode::read_write);
  if (clips()) list_.touch(task, clip(), Mode::read);
}

void UpdateLowering::pack(BucketId b, bool join_step) {
  const Bucket& bucket = blueprint_.buckets[b.value];
  const auto pack_for = [&](GroupId group, bool join) {
    if (bucket.packed_bytes[group.value] == 0) return;
    Task& task = list_.task_for(group, join);
    task.actions.push_back(
        {.phase = Phase::pack, .segment = bucket.segment, .bucket = b, .group = group});
    task.priority = 1;
    list_.touch(task, list_.parameters(b), Mode::read);
    list_.touch_packed(task, b, group, Mode::write);
  };
  pack_for(blueprint_.owner, join_step);
  for (std::uint32_t g = 0; g < bucket.packed_bytes.size(); ++g)
    if (GroupId{g} != blueprint_.owner) pack_for(GroupId{g}, false);
}

}  // namespace regatta
