#include "tune/trials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "support/small_run.h"
#include "tune/plan_job.h"

namespace regatta {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// Two ways of cutting a small network, predicted alike.
PlannedJob job_with_a_choice() {
  JobOptions options;
  options.network = small_network();
  options.data = "synth:1x6x6/3@64";
  options.batch = 16;
  options.workers = 2;
  PlannedJob planned{make_job(options), Choice{}};
  const TrainJob& job = planned.job;
  for (const std::int64_t chunks : {2, 4}) {
    PlanOptions plan{.workers = 2, .layout = default_cpu_layout()};
    plan.chunks = {chunks};
    Candidate each;
    each.plan = make_plan(job.graph, job.recipe, plan);
    each.granularity = {"step", static_cast<std::size_t>(chunks), 1, 2};
    each.predicted = Seconds(1e-4);
    planned.choice->candidates.push_back(std::move(each));
  }
  return planned;
}

TEST(Trials, EveryFinalistIsTriedAndTheFastestTaken) {
  auto [job, choice, options] = job_with_a_choice();
  testing::internal::CaptureStderr();
  const std::vector<Observation> seen = try_candidates(job, *choice, Seconds(2));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("trying plans out"));
  std::set<std::string> tried;
  for (const Observation& each : seen) {
    tried.insert(each.signature);
    EXPECT_GT(each.seconds, 0);
  }
  EXPECT_EQ(tried.size(), 2u);

  Profile profile;
  profile.learn(seen);
  apply_stored_trials(*choice, job.graph, job.recipe, profile);
  rank_by_trials(*choice);
  const std::vector<Candidate>& all = choice->candidates;
  EXPECT_LE(all.front().tried, 1.021 * all.back().tried);
  // What is known need not be tried again.
  EXPECT_THAT(try_candidates(job, *choice, Seconds(2)), IsEmpty());
}

TEST(Trials, WithoutTimeNothingIsTried) {
  const auto [job, choice, options] = job_with_a_choice();
  EXPECT_THAT(try_candidates(job, *choice, Seconds(0.01)), IsEmpty());
}

TEST(Trials, WithoutAChoiceTheOnePlanIsTriedSoThatItsTimeIsKnown) {
  auto [job, choice, options] = job_with_a_choice();
  choice->candidates.pop_back();
  Profile profile;
  profile.learn(try_candidates(job, *choice, Seconds(2)));
  apply_stored_trials(*choice, job.graph, job.recipe, profile);
  EXPECT_TRUE(choice->best().was_tried());
  EXPECT_EQ(choice->best().expected(), choice->best().tried);
}

}  // namespace
}  // namespace regatta
