#include "tune/recomputation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "plan/segments.h"
#include "support/error_text.h"
#include "train/memory_check.h"

namespace regatta {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Recomputation : public testing::Test {
 protected:
  static TrainJob made_job(const std::string& model = "resnet20",
                           const std::string& data = "synth:3x32x32/10@256") {
    JobOptions options;
    options.model = model;
    options.data = data;
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

TEST_F(Recomputation, TheWorkspaceOfKernelsMustFitToo) {
  PlanOptions kept = plan;
  kept.recompute.reset();
  const Plan made = make_plan(job.graph, job.recipe, kept);
  const std::size_t workspace = memory_by_kind(job, made).at(workspace_kind);
  EXPECT_THAT(settle_recomputation(job, plan, leaves(bytes(kept) - workspace / 2)),
              HasSubstr("are computed again in backward"));
  EXPECT_LE(bytes(plan), bytes(kept) - workspace / 2);
}

// Lanes of squeezenet, whose chunks do not meet, would need less with more chunks than are made.
TEST_F(Recomputation, JudgesThePlanThatIsMadeWithoutChunksNamed) {
  const TrainJob squeezenet = made_job("squeezenet1_1", "synth:3x64x64/10@256");
  const auto needs = [&](const PlanOptions& options) {
    return memory_needed(squeezenet, make_plan(squeezenet.graph, squeezenet.recipe, options));
  };
  for (const bool deterministic : {false, true}) {
    PlanOptions asked{.workers = 4, .recompute = "auto"};
    asked.deterministic = deterministic;
    PlanOptions finer = asked;
    finer.recompute.reset();
    const std::size_t kept = needs(finer);
    finer.chunks = {16};
    PlanOptions all = asked;
    all.segments = "4";
    all.recompute = "all";
    const std::size_t room = std::max(needs(finer), needs(all));
    ASSERT_LT(room, kept);
    settle_recomputation(squeezenet, asked, leaves(room));
    EXPECT_LE(needs(asked), room);
  }
}

TEST_F(Recomputation, BesideCoresTheGpuMustHoldItsShare) {
  plan.devices = {DeviceKind::cpu, DeviceKind::cuda};
  PlanOptions alone = plan;
  alone.devices = {DeviceKind::cuda};
  alone.chunks.reset();
  const auto needs = [&](const PlanOptions& options) {
    return gpu_memory_needed(job, make_plan(job.graph, job.recipe, options));
  };
  const std::size_t kept = needs(alone);
  MemoryLeft left = leaves(1 << 30);
  left.gpu = MemoryLimit{"the GPU", 1 << 30, static_cast<std::int64_t>(kept)};
  PlanOptions fitting = plan;
  EXPECT_EQ(settle_recomputation(job, fitting, left), "");
  left.gpu->left -= 1000;
  EXPECT_THAT(settle_recomputation(job, plan, left), HasSubstr(" are computed again in backward"));
  EXPECT_THAT(plan.devices, ElementsAre(DeviceKind::cpu, DeviceKind::cuda));
  alone.segments = plan.segments;
  alone.recompute = plan.recompute;
  alone.backward = plan.backward;
  EXPECT_LT(needs(alone), kept);
}

TEST_F(Recomputation, ASplitBackwardIsRefused) {
  plan.backward = Backward::split;
  EXPECT_THAT(error_text([&] { settle_recomputation(job, plan, leaves(1 << 30)); }),
              HasSubstr("--recompute auto: a split backward needs all values kept"));
}

TEST_F(Recomputation, WhereNothingFitsTheLeastIsTaken) {
  PlanOptions all = plan;
  all.segments = "block";
  all.recompute = "all";
  settle_recomputation(job, plan, leaves(1000));
  EXPECT_LE(bytes(plan), bytes(all));
}

TEST_F(Recomputation, ARefusalSuggestsItOnlyWhereItHelpsAndMayBeAsked) {
  PlanOptions kept = plan;
  kept.recompute.reset();
  PlanOptions all = kept;
  all.segments = "block";
  all.recompute = "all";
  const auto refusal = [&](const PlanOptions& options, std::size_t room) {
    return error_text([&] {
      suggest_recompute(
          job, options, [&] { return leaves(room); },
          [] { throw InputError("it needs too much"); });
    });
  };
  EXPECT_EQ(refusal(kept, bytes(all)), "it needs too much, and --recompute auto fits this one");
  EXPECT_EQ(refusal(kept, bytes(kept)), "it needs too much");  // auto would keep all values
  EXPECT_EQ(refusal(kept, 1000), "it needs too much");
  EXPECT_EQ(refusal(plan, bytes(all)), "it needs too much");
  kept.segments = "step";
  EXPECT_EQ(refusal(kept, bytes(all)), "it needs too much");
  kept.segments.reset();
  kept.backward = Backward::split;
  EXPECT_EQ(refusal(kept, bytes(all)), "it needs too much");
}

// By blocks it does not fit, but auto tries other cuts too.
TEST_F(Recomputation, ARefusalSuggestsWhatAnyCutMakesFit) {
  const TrainJob squeezenet = made_job("squeezenet1_1", "synth:3x64x64/10@256");
  const auto needs = [&](const char* segments) {
    PlanOptions options{.workers = 2};
    options.segments = segments;
    options.recompute = "all";
    return memory_needed(squeezenet, make_plan(squeezenet.graph, squeezenet.recipe, options));
  };
  const std::size_t room = std::min(needs("3"), needs("4"));
  ASSERT_LT(room, needs("block"));
  EXPECT_THAT(error_text([&] {
                suggest_recompute(
                    squeezenet, {.workers = 2}, [&] { return leaves(room); },
                    [] { throw InputError("it needs too much"); });
              }),
              HasSubstr(", and --recompute auto fits this one"));
}

TEST_F(Recomputation, SegmentsThatAreNamedNeedACutAndAWholeBackward) {
  plan.recompute = "0-2";
  EXPECT_EQ(settle_recomputation(job, plan, leaves(1 << 30)), "");
  EXPECT_EQ(plan.segments, "block");
  EXPECT_EQ(plan.backward, Backward::whole);
}

}  // namespace
}  // namespace regatta
