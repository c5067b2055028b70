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
  loss.labels = {0, 1};
  const std::vector<double> found = loss.forward();
  EXPECT_DOUBLE_EQ(found[0], std::log(2.0));
  EXPECT_EQ(found[1], 1);
  EXPECT_DOUBLE_EQ(found[2], std::log(2.0));
  EXPECT_EQ(found[3], 0);
}

TEST(CrossEntropy, IgnoresTheGradientOfCorrectness) {
  OpHarness loss(cross_entropy_op, {}, {Shape{3}}, 1);
  EXPECT_EQ(loss.backward({1, 0}).inputs, loss.backward({1, 1e9}).inputs);
}

TEST(CrossEntropy, SurvivesHugeLogits) {
  OpHarness loss(cross_entropy_op, {}, {Shape{2}}, 1);
  loss.inputs[0] = {1e4, -1e4};
  loss.labels = {1};
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
