#include <gtest/gtest.h>

#include <algorithm>

#include "ops/op_harness.h"
#include "ops/ops.h"

namespace regatta {
namespace {

TEST(Dropout, GradientsMatchDifferences) {
  OpHarness(dropout_op, {{"probability", 0.3}}, {Shape{3, 5, 3}}, 2)
      .expect_gradients_match_differences();
  OpHarness evaluated(dropout_op, {}, {Shape{9}}, 2);
  evaluated.training = false;
  evaluated.expect_gradients_match_differences();
}

std::vector<double> mask(std::int64_t n, std::int64_t first_sample, std::uint64_t step,
                         double probability = 0.25) {
  OpHarness dropout(dropout_op, {{"probability", probability}}, {Shape{2, 10, 10}}, n);
  dropout.step = step;
  dropout.first_sample = first_sample;
  std::ranges::fill(dropout.inputs[0], 1.0);
  return dropout.forward();
}

TEST(Dropout, DropsItsShareAndScalesTheRest) {
  const std::vector<double> values = mask(100, 0, 0);
  EXPECT_NEAR(static_cast<double>(std::ranges::count(values, 0.0)) / 20000, 0.25, 0.01);
  EXPECT_EQ(std::ranges::count(values, 0.0) + std::ranges::count(values, 1 / 0.75), 20000);
  EXPECT_EQ(std::ranges::count(mask(1, 0, 0, 0), 1.0), 200);
}

TEST(Dropout, TheCutHasNoSayButStepAndSampleHave) {
  std::vector<double> whole = mask(5, 0, 7), cut = mask(2, 0, 7);
  const std::vector<double> rest = mask(3, 2, 7);
  cut.insert(cut.end(), rest.begin(), rest.end());
  EXPECT_EQ(cut, whole);
  EXPECT_NE(mask(1, 0, 7), mask(1, 0, 8));
  EXPECT_NE(mask(1, 0, 7), mask(1, 1, 7));
}

TEST(Dropout, IsTheIdentityInEvaluation) {
  OpHarness dropout(dropout_op, {}, {Shape{9}}, 3);
  dropout.training = false;
  EXPECT_EQ(dropout.forward(), dropout.inputs[0]);
}

TEST(Dropout, RefusesWhatCannotBe) {
  expect_refused(dropout_op, {{"probability", 1.0}}, {Shape{3}},
                 "dropout 'layer': it needs a 'probability' from 0 to below 1, found 1.000000");
}

}  // namespace
}  // namespace regatta
