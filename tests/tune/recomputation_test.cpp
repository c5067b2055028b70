#include "tune/recomputation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/segments.h"
#include "train/memory_check.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

class Recomputation : public testing::Test {
 protected:
  static TrainJob made_job() {
    JobOptions options;
    options.model = "resnet20";
    options.data = "synth:3x32x32/10@256";
    options.batch = 64;
    options.test = "none";
    return make_job(options);
  }

  std::size_t bytes(const PlanOptions& options) const {
    return memory_needed(job, make_plan(job.graph, job.recipe, options));
  }
  static MemoryLeft leaves(std::size_t room) {
    return {{{"the machine", 1 << 30, static_cast<std::int64_t>(room)}}};
  }

  const TrainJob job = made_job();
  PlanOptions plan{.workers = 2, .chunks = std::vector{2L}, .recompute = "auto"};
};

TEST_F(Recomputation, KeepsAllValuesWhereTheyFit) {
  EXPECT_EQ(settle_recomputation(job, plan, leaves(bytes(plan))), "");
  EXPECT_FALSE(plan.recompute);
  EXPECT_FALSE(plan.segments);
}

TEST_F(Recomputation, ComputesAsFewSegmentsAgainAsTheMemoryNeeds) {
  PlanOptions kept = plan;
  kept.recompute.reset();
  PlanOptions all = kept;
  all.segments = "block";
  all.recompute = "all";
  ASSERT_LT(bytes(all), bytes(kept));
  const std::size_t room = (bytes(all) + bytes(kept)) / 2;
  const std::string said = settle_recomputation(job, plan, leaves(room));
  EXPECT_THAT(said, HasSubstr("are computed again in backward: at least "));
  EXPECT_EQ(plan.segments, "block");
  EXPECT_EQ(plan.backward, Backward::whole);
  EXPECT_LE(bytes(plan), room);
  ASSERT_TRUE(plan.recompute->starts_with("0-"));
  const int last = std::stoi(plan.recompute->substr(2));
  ASSERT_GT(last, 0);
  PlanOptions fewer = plan;
  fewer.recompute = "0-" + std::to_string(last - 1);
  EXPECT_GT(bytes(fewer), room);
}

TEST_F(Recomputation, WhereNothingFitsTheLeastIsTaken) {
  PlanOptions all = plan;
  all.segments = "block";
  all.recompute = "all";
  settle_recomputation(job, plan, leaves(1000));
  EXPECT_LE(bytes(plan), bytes(all));
}

TEST_F(Recomputation, SegmentsThatAreNamedNeedACutAndAWholeBackward) {
  plan.recompute = "0-2";
  EXPECT_EQ(settle_recomputation(job, plan, leaves(1 << 30)), "");
  EXPECT_EQ(plan.segments, "block");
  EXPECT_EQ(plan.backward, Backward::whole);
}

}  // namespace
}  // namespace regatta
