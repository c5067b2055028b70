#include "tune/trials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "models/models.h"
#include "support/small_run.h"
#include "tune/plan_job.h"

namespace regatta {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// --- ranking

Candidate candidate(std::string segments, std::size_t chunks, int workers, double predicted,
                    double tried = 0) {
  Candidate made;
  made.granularity = {std::move(segments), chunks, 1, workers};
  made.predicted = Seconds(predicted);
  made.tried = Seconds(tried);
  made.tasks = 2 * chunks;
  return made;
}

Choice choice_of(std::vector<Candidate> candidates) { return {std::move(candidates), 10}; }

TEST(TrialRanking, OfPlansThatDifferInDetailsAloneOneIsTried) {
  const Choice choice = choice_of({candidate("step", 2, 2, 1.0), candidate("step", 2, 2, 1.01),
                                   candidate("block", 2, 2, 1.1), candidate("step", 4, 2, 1.15)});
  EXPECT_THAT(finalists(choice, 6), ElementsAre(0, 2, 3));
}

TEST(TrialRanking, GatheredLoadsAreTriedBesideLoadsOfTheirOwn) {
  const Graph graph = fuse(build_model("tiny"));
  Choice choice = choice_of({candidate("step", 2, 2, 1.0), candidate("step", 2, 2, 1.01)});
  Recipe recipe;
  recipe.batch = 8;
  for (Candidate& each : choice.candidates) each.plan = make_plan(graph, recipe, {.workers = 2});
  choice.candidates[1].plan.gather_loads = true;
  EXPECT_THAT(finalists(choice, 6), ElementsAre(0, 1));
  EXPECT_NE(step_signature(graph, recipe, choice.candidates[0].plan),
            step_signature(graph, recipe, choice.candidates[1].plan));
}

TEST(TrialRanking, TheBestOfEachKindIsTriedFirstThenTheOthersByTime) {
  Choice choice = choice_of({candidate("step", 2, 2, 1.0), candidate("block", 2, 2, 1.1),
                             candidate("4", 2, 2, 1.05), candidate("step", 1, 1, 1.8),
                             candidate("op", 1, 1, 1.9), candidate("step", 1, 1, 1.5)});
  choice.candidates[5].granularity.team = 2;
  EXPECT_THAT(finalists(choice, 8), ElementsAre(0, 5, 3, 2, 1));
  EXPECT_THAT(finalists(choice, 3), ElementsAre(0, 5, 3));
  EXPECT_THAT(finalists(choice, 0), IsEmpty());
}

TEST(TrialRanking, WhatIsPredictedFarBehindIsNotTried) {
  Choice choice = choice_of(
      {candidate("step", 2, 2, 1.0), candidate("op", 2, 2, 1.25), candidate("step", 1, 1, 2.1)});
  EXPECT_THAT(finalists(choice, 6), ElementsAre(0));
}

TEST(TrialRanking, TheFastestOfThoseTriedIsTaken) {
  Choice choice = choice_of({candidate("step", 2, 2, 1.0, 1.5), candidate("block", 2, 2, 1.1, 1.2),
                             candidate("4", 2, 2, 1.15)});
  rank_by_trials(choice);
  EXPECT_EQ(choice.best().granularity.segments, "block");
  EXPECT_EQ(choice.best().expected(), Seconds(1.2));
  EXPECT_EQ(choice.candidates.back().granularity.segments, "4");
}

// Something was wrong with a trial that took twice what was predicted, or with the prediction.
TEST(TrialRanking, ATrialFarBehindItsPredictionIsReportedAndPassedOver) {
  Choice choice = choice_of({candidate("step", 2, 2, 1.0, 2.1), candidate("block", 2, 2, 2.0, 2.3),
                             candidate("4", 2, 2, 1.15)});
  EXPECT_TRUE(choice.candidates[0].is_doubtful());
  EXPECT_FALSE(choice.candidates[1].is_doubtful());
  EXPECT_FALSE(choice.candidates[2].is_doubtful()) << "nobody tried it";
  EXPECT_NE(doubts(choice).find("took 2.1e+03 ms a step where 1e+03 ms were predicted"),
            std::string::npos);
  Choice on_gpu = choice_of({candidate("step", 1, 0, 1.0, 2.1)});
  on_gpu.candidates[0].granularity.gpu_share = 64;
  EXPECT_NE(doubts(on_gpu).find("segments step on the GPU took"), std::string::npos);
  rank_by_trials(choice);
  EXPECT_EQ(choice.best().granularity.segments, "block");
  // Where all of them are far behind, the machine is slower than it was: the fastest is taken.
  choice.candidates[0].tried = Seconds(4.5);
  rank_by_trials(choice);
  EXPECT_EQ(choice.best().granularity.segments, "step");
}

TEST(TrialRanking, FewerTasksDoNotMakeUpForADoubtfulTrial) {
  Choice choice =
      choice_of({candidate("block", 4, 2, 1.0, 1.0), candidate("step", 2, 2, 0.4, 1.0)});
  rank_by_trials(choice);
  EXPECT_EQ(choice.best().granularity.segments, "block");
  EXPECT_TRUE(choice.candidates.back().is_doubtful());
}

TEST(TrialRanking, OfThoseAboutAsFastTheOneWithFewestTasksIsTaken) {
  Choice choice =
      choice_of({candidate("block", 4, 2, 1.0, 1.0), candidate("step", 2, 2, 1.1, 1.015),
                 candidate("step", 1, 1, 1.2, 1.2)});
  rank_by_trials(choice);
  EXPECT_EQ(choice.best().granularity.chunks, 2u);
}

TEST(TrialRanking, MoreTasksMustBringMoreThanTrialsErr) {
  Choice choice = choice_of({candidate("step", 2, 2, 1.0, 1.015), candidate("step", 8, 2, 1.0, 1)});
  rank_by_trials(choice);
  EXPECT_EQ(choice.best().granularity.chunks, 2u);
  choice.candidates[0].tried = Seconds(1.03);
  rank_by_trials(choice);
  EXPECT_EQ(choice.best().granularity.chunks, 8u);
}

TEST(TrialRanking, OneTrialAloneDecidesNothing) {
  Choice choice = choice_of({candidate("step", 2, 2, 1.0), candidate("block", 2, 2, 1.1, 0.5)});
  rank_by_trials(choice);
  EXPECT_EQ(choice.best().granularity.segments, "step");
}

TEST(TrialRanking, WhatWasTriedIsRecalledForTheSameWorkAndCutOnly) {
  const Graph graph = fuse(build_model("tiny"));
  Recipe recipe;
  recipe.model = "tiny";
  recipe.batch = 8;
  PlanOptions options{.workers = 2};
  options.chunks = {2};
  Choice choice = choice_of({{}, {}});
  choice.candidates[0].plan = make_plan(graph, recipe, options);
  options.chunks = {4};
  choice.candidates[1].plan = make_plan(graph, recipe, options);
  const std::vector<Observation> seen{
      {step_signature(graph, recipe, choice.candidates[1].plan), 1, 1, 0.25}};
  Profile profile;
  profile.learn(seen);

  recipe.seed = 99;  // matters to nobody
  recipe.optimizer.learning_rate = 0.5;
  choice.candidates[1].plan = make_plan(graph, recipe, options);
  apply_stored_trials(choice, graph, recipe, profile);
  EXPECT_FALSE(choice.candidates[0].was_tried());
  EXPECT_DOUBLE_EQ(choice.candidates[1].tried.count(), 0.25);

  choice.candidates[1].tried = Seconds(0);
  recipe.batch = 16;
  apply_stored_trials(choice, graph, recipe, profile);
  EXPECT_FALSE(choice.candidates[1].was_tried());
}

// --- trying

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

TEST(TrialNote, SaysAtOnceThatPlansAreTriedAndForHowLong) {
  testing::internal::CaptureStderr();
  { TrialNote(Seconds(12)).on_turn(); }
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("trying plans out: 0 s of at most 12 s"));
}

TEST(LongestTrials, AreASmallPartOfTheRun) {
  EXPECT_EQ(longest_trials(1000, Seconds(0.1)), Seconds(3));
  EXPECT_EQ(longest_trials(1'000'000, Seconds(0.1)), Seconds(15));
  EXPECT_EQ(longest_trials(std::nullopt, Seconds(0.1)), Seconds(15));
}

}  // namespace
}  // namespace regatta
