#include "train/rehearse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "support/small_run.h"
#include "tasks/rehearsed.h"

namespace regatta {
namespace {

using testing::IsEmpty;

// Two ways of cutting a small network, predicted alike.
TrainJob job_with_a_choice() {
  JobOptions options;
  options.network = small_network();
  options.data = "synth:1x6x6/3@64";
  options.batch = 16;
  options.workers = 2;
  TrainJob job = make_job(options);
  job.choice.emplace();
  for (const std::int64_t chunks : {2, 4}) {
    PlanOptions plan{.workers = 2, .layout = default_cpu_layout()};
    plan.chunks = {chunks};
    Candidate each;
    each.plan = make_plan(job.graph, job.recipe, plan);
    each.granularity = {"step", static_cast<std::size_t>(chunks), 1, 2};
    each.step_seconds = 1e-4;
    job.choice->candidates.push_back(std::move(each));
  }
  return job;
}

TEST(Rehearse, EveryFinalistIsTriedAndTheFastestTaken) {
  TrainJob job = job_with_a_choice();
  int turns = 0;
  const std::vector<Observation> seen = rehearse(job, Seconds(2), [&] { ++turns; });
  EXPECT_GE(turns, 2);  // whoever waits is told
  std::set<std::string> tried;
  for (const Observation& each : seen) {
    tried.insert(each.signature);
    EXPECT_GT(each.seconds, 0);
  }
  EXPECT_EQ(tried.size(), 2u);

  Profile profile;
  profile.learn(seen);
  recall(*job.choice, job.graph, job.recipe, profile);
  settle(*job.choice);
  const std::vector<Candidate>& all = job.choice->candidates;
  EXPECT_LE(all.front().rehearsed, 1.021 * all.back().rehearsed);
  // What is known need not be tried again.
  EXPECT_THAT(rehearse(job, Seconds(2)), IsEmpty());
}

TEST(Rehearse, WithoutTimeNothingIsTried) {
  EXPECT_THAT(rehearse(job_with_a_choice(), Seconds(0.01)), IsEmpty());
}

TEST(Rehearse, WithoutAChoiceTheOnePlanIsTriedSoThatItsTimeIsKnown) {
  TrainJob job = job_with_a_choice();
  job.choice->candidates.pop_back();
  Profile profile;
  profile.learn(rehearse(job, Seconds(2)));
  recall(*job.choice, job.graph, job.recipe, profile);
  EXPECT_GT(job.choice->best().rehearsed, 0);
  EXPECT_EQ(job.choice->best().expected_seconds(), job.choice->best().rehearsed);
}

}  // namespace
}  // namespace regatta
