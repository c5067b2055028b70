#include "tune/plan_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "support/error_text.h"
#include "support/scoped_variable.h"
#include "support/small_run.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

using testing::HasSubstr;

class PlanJob : public testing::Test {
 protected:
  static JobOptions options() {
    JobOptions made;
    made.network = small_network();
    made.data = "synth:1x6x6/3@64";
    made.test = "none";
    made.batch = 16;
    made.workers = 2;
    return made;
  }
  bool profile_was_written() const { return !std::filesystem::is_empty(folder_.path()); }

 private:
  TemporaryFolder folder_;
  ScopedVariable profiles_{"REGATTA_PROFILES", folder_.path().string()};
};

TEST_F(PlanJob, WithoutCostsARuleOfThumbCuts) {
  const PlannedJob planned = plan_job(options(), {.by_costs = false});
  const TrainJob thumb = make_job(options());
  EXPECT_EQ(to_json(planned.job.plan, thumb.graph), to_json(thumb.plan, thumb.graph));
  EXPECT_FALSE(planned.choice);
  EXPECT_FALSE(planned.job.predicted_step);
}

TEST_F(PlanJob, ARunThatIsSoonOverIsNotMeasuredFirst) {
  JobOptions few = options();
  few.steps = 2;
  const PlannedJob planned = plan_job(few, {.for_this_run = true});
  ASSERT_TRUE(planned.choice);
  EXPECT_FALSE(planned.choice->by_costs) << "nothing is known of its costs";
  EXPECT_EQ(planned.job.predicted_step, planned.choice->best().expected());
  EXPECT_FALSE(profile_was_written());
}

TEST_F(PlanJob, MeasurementsHaveNoSayInDeterministicPlans) {
  JobOptions same_bits = options();
  same_bits.plan.deterministic = true;
  const PlannedJob planned = plan_job(same_bits, {});
  EXPECT_FALSE(planned.choice);
  EXPECT_FALSE(profile_was_written());
}

TEST_F(PlanJob, WhatTheUserFixedIsAppliedToThePlan) {
  JobOptions chunks = options();
  chunks.plan.chunks = {4};
  const PlannedJob planned =
      plan_job(chunks, {.by_costs = false, .slow = {"1=2"}, .placement = Placement::fixed});
  const Plan& plan = planned.job.plan;
  EXPECT_EQ(plan.nodes[0].groups[0].slow, (std::vector<double>{1, 2}));
  EXPECT_EQ(plan.placement, Placement::fixed);
  EXPECT_EQ(plan.order.size(), 2u) << "each worker has its list";
  const PlannedJob shared =
      plan_job(options(), {.by_costs = false, .shares = WorkerShares::equal, .slow = {"1=2"}});
  EXPECT_EQ(shared.job.plan.nodes[0].groups[0].chunks, (std::vector<std::int64_t>{8, 8}));
  EXPECT_EQ(shared.job.plan.placement, Placement::hybrid);
}

TEST_F(PlanJob, APlanIsCheckedAfterAllThatChangesIt) {
  JobOptions strange = options();
  strange.plan.scheduler = "lws";
  EXPECT_THAT(
      error_text([&] { plan_job(strange, {.by_costs = false, .placement = Placement::hybrid}); }),
      HasSubstr("--placement hybrid needs --scheduler regatta, not lws"));
}

}  // namespace
}  // namespace regatta
