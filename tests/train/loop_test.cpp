#include "train/loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "platform/machine.h"
#include "support/error_text.h"
#include "support/small_run.h"
#include "train/weights.h"

namespace regatta {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TrainingLoop : public testing::Test {
 protected:
  TrainingLoop() { initialise_weights(executor, job.recipe.seed); }

  void run(std::int64_t last_step) {
    goal.last_step = last_step;
    train(executor, job.recipe, job.data, job.test, goal, recorder);
  }

  TrainJob job = small_job();
  Executor executor{job.graph, job.plan, job.exec_options(true)};
  TrainGoal goal;
  Recorder recorder;
};

TEST_F(TrainingLoop, TheLastBatchOfAnEpochIsWhatIsLeft) {
  ASSERT_EQ(steps_per_epoch(job.recipe, *job.data), 3);
  run(6);
  std::vector<std::int64_t> samples, numbers;
  for (const StepRecord& step : recorder.steps) {
    samples.push_back(step.samples);
    numbers.push_back(step.step);
  }
  EXPECT_THAT(samples, ElementsAre(4, 4, 2, 4, 4, 2));
  EXPECT_THAT(numbers, ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(TrainingFarAhead, StepsComeInOrderHoweverManyAreInFlightAndWorkersLeaveNoCpu) {
  TrainJob far_ahead = small_job();
  far_ahead.plan.steps_in_flight = 8;
  for (const int workers : {1, available_cpus()}) {
    Plan plan = far_ahead.plan;
    plan.nodes.front().groups.front().workers = workers;
    Executor many(far_ahead.graph, plan, far_ahead.exec_options(true));
    initialise_weights(many, far_ahead.recipe.seed);
    Recorder seen;
    TrainGoal goal;
    goal.last_step = 20;
    train(many, far_ahead.recipe, far_ahead.data, far_ahead.test, goal, seen);
    ASSERT_EQ(seen.steps.size(), 20u);
    for (std::size_t i = 0; i < seen.steps.size(); ++i)
      EXPECT_EQ(seen.steps[i].step, static_cast<std::int64_t>(i) + 1);
    EXPECT_EQ(seen.epochs.size(), 7u);
  }
}

TEST_F(TrainingLoop, AnEpochCountsEverySampleOnce) {
  run(3);
  double loss = 0, correct = 0;
  for (const StepRecord& step : recorder.steps) {
    loss += step.loss * static_cast<double>(step.samples);
    correct += static_cast<double>(step.correct);
  }
  ASSERT_EQ(recorder.epochs.size(), 1u);
  EXPECT_NEAR(recorder.epochs[0].train_loss, loss / 10, 1e-12);
  EXPECT_NEAR(recorder.epochs[0].train_accuracy, correct / 10, 1e-12);
}

TEST_F(TrainingLoop, TestsAfterEveryEpochAndAtTheEnd) {
  run(4);
  ASSERT_EQ(recorder.epochs.size(), 2u);
  for (const EpochRecord& epoch : recorder.epochs) EXPECT_TRUE(epoch.test_accuracy);
  EXPECT_THAT(recorder.rests, ElementsAre(3, 4));
}

TEST_F(TrainingLoop, WithoutTestDataThereIsNoTest) {
  job.test = nullptr;
  run(3);
  EXPECT_FALSE(recorder.epochs.at(0).test_loss);
  EXPECT_FALSE(recorder.epochs.at(0).test_accuracy);
}

TEST_F(TrainingLoop, StopsAtRestWithinAnEpoch) {
  recorder.stop_after = 2;
  run(100);
  EXPECT_EQ(recorder.steps.size(), 2u);
  EXPECT_THAT(recorder.rests, ElementsAre(2));
  EXPECT_TRUE(recorder.epochs.empty());
}

TEST_F(TrainingLoop, RestsWhenARestIsWanted) {
  recorder.rest_every = 2;
  run(6);
  EXPECT_THAT(recorder.rests, ElementsAre(2, 3, 4, 6));
  EXPECT_EQ(recorder.states[0].seen, 8);  // within the epoch
  EXPECT_EQ(recorder.states[1].seen, 0);  // after it
  EXPECT_EQ(recorder.epochs.size(), 2u);
}

// Writing checkpoints is a part of the time that training takes.
TEST_F(TrainingLoop, ARestBetweenStepsCountsInTheThroughput) {
  class Saving : public TrainObserver {
   public:
    bool wants_rest(std::int64_t step) override { return step == 14; }
    void on_rest(const TrainState& state) override {
      if (state.step == 14) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  } saving;
  goal.last_step = 20;
  const Speed speed = train(executor, job.recipe, job.data, nullptr, goal, saving);
  // At most 40 images after warm-up.
  EXPECT_GT(speed.images_per_s, 0);
  EXPECT_LE(speed.images_per_s, 40 / 0.2);
}

TEST_F(TrainingLoop, AnEpochInTwoPiecesCountsAsOne) {
  run(3);
  const Recorder whole = recorder;
  initialise_weights(executor, job.recipe.seed);
  recorder = {};
  recorder.stop_after = 2;
  run(3);
  goal.from = recorder.states.back();
  recorder = {};
  run(3);
  ASSERT_EQ(recorder.epochs.size(), 1u);
  EXPECT_EQ(recorder.epochs[0].train_loss, whole.epochs[0].train_loss);
  EXPECT_EQ(recorder.epochs[0].train_accuracy, whole.epochs[0].train_accuracy);
}

TEST_F(TrainingLoop, TheFirstStepsGradientsCanBeSeenBeforeTheSecond) {
  TensorFile first;
  goal.after_first_step = [&] {
    ASSERT_TRUE(first.tensors.empty());
    EXPECT_EQ(recorder.steps.size(), 1u);
    first = gradients_of(executor);
  };
  run(4);
  ASSERT_FALSE(first.tensors.empty());
  EXPECT_NE(first.tensors.back().bytes, gradients_of(executor).tensors.back().bytes);
}

TEST_F(TrainingLoop, AnEvaluationDoesNotDependOnTheBatch) {
  run(3);  // the running statistics have moved
  const Evaluation whole = evaluate(executor, job.data, 4, true);
  EXPECT_EQ(whole.logits.size(), 30u);
  for (const std::int64_t batch : {1, 2, 3}) {
    const Evaluation cut = evaluate(executor, job.data, batch, true);
    EXPECT_EQ(cut.accuracy, whole.accuracy) << batch;
    EXPECT_NEAR(cut.loss, whole.loss, 1e-6) << batch;
    for (std::size_t i = 0; i < whole.logits.size(); ++i)
      ASSERT_NEAR(cut.logits[i], whole.logits[i], 1e-5) << batch;
  }
}

TEST_F(TrainingLoop, AnEvaluationChangesNothing) {
  const std::string before = weights_of(executor).find("bn.running_mean")->bytes;
  evaluate(executor, job.data, 4);
  EXPECT_EQ(weights_of(executor).find("bn.running_mean")->bytes, before);
}

TEST(Divergence, EndsTheRunAndNamesTheStep) {
  TrainJob job = small_job();
  job.recipe.optimizer.learning_rate = 1e30;
  Executor executor(job.graph, job.plan, job.exec_options(true));
  initialise_weights(executor, 1);
  TrainGoal goal;
  goal.last_step = 100;
  Recorder recorder;
  const std::string said =
      error_text([&] { train(executor, job.recipe, job.data, nullptr, goal, recorder); });
  EXPECT_THAT(said, HasSubstr("step " + std::to_string(recorder.steps.size() + 1) +
                              ": the loss is no longer a number"));
}

TEST(LastStep, IsThatOfTheEpochsOrTheSteps) {
  EXPECT_EQ(last_step_of({}, {}, 7), 7);
  EXPECT_EQ(last_step_of(3, {}, 7), 21);
  EXPECT_EQ(last_step_of({}, 5, 7), 5);
}

TEST(LastStep, RefusesWhatCannotBeCounted) {
  EXPECT_THAT(error_text([] { last_step_of(INT64_MAX, {}, 7); }), HasSubstr("--epochs 92233"));
  EXPECT_THAT(error_text([] { last_step_of(0, {}, 7); }), HasSubstr("--epochs 0"));
  EXPECT_THAT(error_text([] { last_step_of({}, -1, 7); }), HasSubstr("--steps -1"));
  EXPECT_THAT(error_text([] { last_step_of(1, 1, 7); }), HasSubstr("exclude each other"));
}

}  // namespace
}  // namespace regatta
