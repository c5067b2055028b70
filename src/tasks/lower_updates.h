// Tasks after a bucket's gradient is complete: summing its slots and those of other ranks,
// clipping, the optimizer's step, and laying parameters out as kernels read them.
#pragma once

#include "tasks/list_builder.h"

namespace regatta {

class UpdateLowering {
 public:
  explicit UpdateLowering(ListBuilder& list) : list_(list), blueprint_(list.blueprint()) {}

  // A bucket's gradient is complete: slots are summed, and parameters take their step, unless
  // clipping wants the whole gradient first.
  void reduce_and_update(BucketId b);
  // All buckets' gradients are complete: they are clipped together and take their steps.
  void clipped_updates();
  // Every group lays the parameters out for itself; the owner may do so with the step.
  void pack(BucketId b, bool join_step);
  bool clips() const { return blueprint_.optimizer.clip_norm > 0; }

 private:
  void sum_slots_of(GroupId group, BucketId b);
  void measure(BucketId b, bool join);
  void step(BucketId b, bool join);
  std::uint32_t group_sum(BucketId b, GroupId group);
  std::uint32_t squares(BucketId b);
  std::uint32_t clip();

  ListBuilder& list_;
  const Blueprint& blueprint_;
};

}  // namespace regatta
