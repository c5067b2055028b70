#include <gtest/gtest.h>

#include "ops/op_harness.h"
#include "ops/ops.h"

namespace regatta {
namespace {

TEST(Flatten, GradientsMatchDifferences) {
  OpHarness(flatten_op, {}, {Shape{3, 5, 3}}, 2).expect_gradients_match_differences();
}

TEST(Flatten, KeepsTheNumbersInOrder) {
  OpHarness flatten(flatten_op, {}, {Shape{3, 5, 3}}, 2);
  EXPECT_EQ(flatten.node().shape, Shape{45});
  EXPECT_EQ(flatten.forward(), flatten.inputs[0]);
}

TEST(Flatten, RefusesTwoInputs) {
  expect_refused(flatten_op, {}, {Shape{3}, Shape{3}},
                 "flatten 'layer': it takes 1 input, found 2");
}

}  // namespace
}  // namespace regatta
