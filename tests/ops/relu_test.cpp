#include <gtest/gtest.h>

#include "ops/op_harness.h"
#include "ops/ops.h"

namespace regatta {
namespace {

TEST(Relu, GradientsMatchDifferences) {
  OpHarness(relu_op, {}, {Shape{3, 5, 3}}, 2).expect_gradients_match_differences();
}

TEST(Relu, GradientAtZeroIsZero) {
  OpHarness relu(relu_op, {}, {Shape{3}}, 1);
  relu.inputs[0] = {-1, 0, 2};
  EXPECT_EQ(relu.forward(), (std::vector<double>{0, 0, 2}));
  EXPECT_EQ(relu.backward({5, 5, 5}).inputs[0], (std::vector<double>{0, 0, 5}));
}

TEST(Relu, RefusesTwoInputs) {
  expect_refused(relu_op, {}, {Shape{3}, Shape{3}}, "relu 'layer': it takes 1 input, found 2");
}

}  // namespace
}  // namespace regatta
