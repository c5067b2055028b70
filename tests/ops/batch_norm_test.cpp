#include <gtest/gtest.h>

#include <cmath>

#include "ops/op_harness.h"
#include "ops/ops.h"

namespace regatta {
namespace {

TEST(BatchNorm, GradientsMatchDifferences) {
  const Shape image{3, 2, 3};
  const Shape vector{4};
  for (const bool training : {true, false})
    for (const std::int64_t relu : {0, 1})
      for (const auto& shapes : {std::vector{image}, {image, image}, {vector}, {vector, vector}}) {
        OpHarness norm(batch_norm_op, {{"relu", relu}}, shapes, 5);
        norm.training = training;
        norm.expect_gradients_match_differences();
      }
}

TEST(BatchNorm, TrainingNormalisesByTheBatchAndRecordsTheUnbiasedVariance) {
  OpHarness norm(batch_norm_op, {{"epsilon", 0.0}}, {Shape{1}}, 2);
  norm.inputs[0] = {1, 5};  // mean 3, biased variance 4, unbiased 8
  norm.parameters = {{10}, {0.5}};
  norm.states = {{0}, {1}, {0}};
  EXPECT_EQ(norm.forward(), (std::vector<double>{-9.5, 10.5}));
  EXPECT_DOUBLE_EQ(norm.states[0][0], 0.1 * 3);
  EXPECT_DOUBLE_EQ(norm.states[1][0], 0.9 * 1 + 0.1 * 8);
  EXPECT_EQ(norm.states[2][0], 1);
}

TEST(BatchNorm, EvaluationUsesTheRunningStatisticsAndLeavesThem) {
  OpHarness norm(batch_norm_op, {{"epsilon", 0.0}}, {Shape{1}}, 2);
  norm.training = false;
  norm.inputs[0] = {1, 5};
  norm.parameters = {{10}, {0.5}};
  norm.states = {{1}, {4}, {7}};
  EXPECT_EQ(norm.forward(), (std::vector<double>{0.5, 20.5}));
  EXPECT_EQ(norm.states, (Tensors<double>{{1}, {4}, {7}}));
}

TEST(BatchNorm, TheResidualJoinsBeforeTheRelu) {
  OpHarness norm(batch_norm_op, {{"epsilon", 0.0}, {"relu", 1}}, {Shape{1}, Shape{1}}, 2);
  norm.inputs = {{1, 5}, {3, -3}};
  norm.parameters = {{1}, {0}};
  EXPECT_EQ(norm.forward(), (std::vector<double>{2, 0}));
}

TEST(BatchNorm, ALoneValueLeavesFiniteStatistics) {
  OpHarness norm(batch_norm_op, {}, {Shape{1}}, 1);
  norm.forward();
  EXPECT_TRUE(std::isfinite(norm.states[1][0]));
}

TEST(BatchNorm, GradientsOfGroupsMatchDifferences) {
  for (const std::int64_t relu : {0, 1})
    for (const auto& shapes : {std::vector{Shape{3, 2, 3}}, {Shape{2, 2, 1}, Shape{2, 2, 1}}}) {
      OpHarness norm(batch_norm_op, {{"relu", relu}, {"group", 2}}, shapes, 5);
      norm.expect_gradients_match_differences();
    }
}

// Groups {1, 5}, {2, 8} and the short {4}: means 3, 5, 4; unbiased variances 8, 18, 0.
TEST(BatchNorm, GroupsAreNormalisedApartAndRecordedOnce) {
  OpHarness norm(batch_norm_op, {{"epsilon", 1e-12}, {"group", 2}}, {Shape{1}}, 5);
  norm.inputs[0] = {1, 5, 2, 8, 4};
  norm.parameters = {{1}, {0}};
  norm.states = {{0}, {1}, {0}};
  const std::vector<double> expected{-1, 1, -1, 1, 0}, made = norm.forward();
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(made[i], expected[i], 1e-9);
  EXPECT_DOUBLE_EQ(norm.states[0][0], 0.1 * (2 * 3 + 2 * 5 + 4) / 5);
  EXPECT_DOUBLE_EQ(norm.states[1][0], 0.9 + 0.1 * (2 * 8 + 2 * 18) / 5);
  EXPECT_EQ(norm.states[2][0], 1);
}

TEST(BatchNorm, EvaluationKnowsNoGroups) {
  OpHarness norm(batch_norm_op, {{"epsilon", 0.0}, {"group", 1}}, {Shape{1}}, 2);
  norm.training = false;
  norm.inputs[0] = {1, 5};
  norm.parameters = {{10}, {0.5}};
  norm.states = {{1}, {4}, {7}};
  EXPECT_EQ(norm.forward(), (std::vector<double>{0.5, 20.5}));
}

TEST(BatchNorm, RefusesWhatCannotBe) {
  expect_refused(batch_norm_op, {}, {Shape{3, 4, 4}, Shape{3, 2, 2}},
                 "batch_norm 'layer': the residual is 3x2x2 but its input is 3x4x4; they must be "
                 "equal");
  expect_refused(batch_norm_op, {}, {Shape{3}, Shape{3}, Shape{3}},
                 "batch_norm 'layer': it takes 1 or 2 inputs, found 3");
  expect_refused(batch_norm_op, {}, {Shape{3, 4}},
                 "batch_norm 'layer': its input must be channels x height x width or a vector, "
                 "found 3x4");
}

}  // namespace
}  // namespace regatta
