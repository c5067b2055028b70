#include <gtest/gtest.h>

#include <cmath>

#include "ops/op_harness.h"
#include "ops/ops.h"

namespace regatta {
namespace {

TEST(CrossEntropy, GradientsMatchDifferences) {
  OpHarness(cross_entropy_op, {}, {Shape{7}}, 5).expect_gradients_match_differences();
}

TEST(CrossEntropy, GivesTheLossAndWhetherTheFirstLargestIsRight) {
  OpHarness loss(cross_entropy_op, {}, {Shape{2}}, 2);
  loss.inputs[0] = {3, 3, 3, 3};
  loss.targets = {Target::of(0), Target::of(1)};
  const std::vector<double> found = loss.forward();
  EXPECT_DOUBLE_EQ(found[0], std::log(2.0));
  EXPECT_EQ(found[1], 1);
  EXPECT_DOUBLE_EQ(found[2], std::log(2.0));
  EXPECT_EQ(found[3], 0);
}

TEST(CrossEntropy, GradientsMatchDifferencesForSmoothedAndBlendedTargets) {
  OpHarness loss(cross_entropy_op, {{"smoothing", 0.1}}, {Shape{7}}, 3);
  loss.targets = {{1, 4, 0.3f}, {2, 2, 0.0f}, {6, 0, 0.75f}};
  loss.expect_gradients_match_differences();
}

TEST(CrossEntropy, ABlendedTargetIsTheBlendOfTwoLosses) {
  OpHarness loss(cross_entropy_op, {}, {Shape{3}}, 3);
  loss.inputs[0] = {0.5, -1, 2, 0.5, -1, 2, 0.5, -1, 2};
  loss.targets = {Target::of(0), Target::of(2), {0, 2, 0.75f}};
  const std::vector<double> found = loss.forward();
  EXPECT_DOUBLE_EQ(found[4], 0.25 * found[0] + 0.75 * found[2]);
  EXPECT_EQ(found[5], 1);  // most of it is class 2
}

TEST(CrossEntropy, SmoothingSpreadsSomeOfTheTargetInTrainingAlone) {
  OpHarness plain(cross_entropy_op, {}, {Shape{3}}, 3),
      loss(cross_entropy_op, {{"smoothing", 0.3}}, {Shape{3}}, 3);
  for (OpHarness* each : {&plain, &loss}) {
    each->inputs[0] = {0.5, -1, 2, 0.5, -1, 2, 0.5, -1, 2};
    each->targets = {Target::of(0), Target::of(1), Target::of(2)};
  }
  const std::vector<double> apart = plain.forward();
  EXPECT_NEAR(loss.forward()[0], 0.7 * apart[0] + 0.1 * (apart[0] + apart[2] + apart[4]), 1e-12);
  loss.training = false;
  EXPECT_EQ(loss.forward(), apart);
}

TEST(CrossEntropy, IgnoresTheGradientOfCorrectness) {
  OpHarness loss(cross_entropy_op, {}, {Shape{3}}, 1);
  EXPECT_EQ(loss.backward({1, 0}).inputs, loss.backward({1, 1e9}).inputs);
}

TEST(CrossEntropy, SurvivesHugeLogits) {
  OpHarness loss(cross_entropy_op, {}, {Shape{2}}, 1);
  loss.inputs[0] = {1e4, -1e4};
  loss.targets = {Target::of(1)};
  EXPECT_EQ(loss.forward()[0], 2e4);
  EXPECT_EQ(loss.backward({1, 0}).inputs[0], (std::vector<double>{1, -1}));
}

TEST(CrossEntropy, RefusesAnImage) {
  expect_refused(cross_entropy_op, {}, {Shape{10, 1, 1}},
                 "cross_entropy 'layer': logits must be a vector, found 10x1x1; end with a dense "
                 "layer");
}

}  // namespace
}  // namespace regatta
