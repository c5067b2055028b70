// Which settings a rank's part of a new plan takes over from the plan before.
#include "train/rank_part.h"

#include <gtest/gtest.h>

namespace regatta {
namespace {

Plan gpu_plan(int loaders) {
  Plan plan;
  plan.loaders = loaders;
  plan.nodes = {{}};
  DeviceGroup gpu;
  gpu.kind = DeviceKind::cuda;
  plan.nodes.front().groups = {gpu};
  return plan;
}

TEST(RankPart, KeepsLoadersAndASlowGpu) {
  Plan plan = gpu_plan(14);
  keep_the_rest(plan, gpu_plan(3));
  EXPECT_EQ(plan.loaders, 3);
  keep_slow(plan, {2});
  EXPECT_EQ(plan.nodes.front().groups.front().slow, std::vector<double>{2});
}

}  // namespace
}  // namespace regatta
