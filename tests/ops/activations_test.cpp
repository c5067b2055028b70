// The operators that treat each element alone.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/op_harness.h"
#include "ops/ops.h"

namespace regatta {
namespace {

TEST(Activations, GradientsMatchDifferences) {
  for (const OpDef* op : {&relu6_op, &leaky_relu_op, &sigmoid_op, &tanh_op, &gelu_op}) {
    OpHarness activation(*op, {}, {Shape{3, 5, 3}}, 2);
    for (double& value : activation.inputs[0]) value *= 8;  // so that relu6's upper end is met
    activation.expect_gradients_match_differences();
  }
  OpHarness(leaky_relu_op, {{"slope", 0.2}}, {Shape{7}}, 2).expect_gradients_match_differences();
  OpHarness(gelu_op, {{"tanh", 1}}, {Shape{7}}, 2).expect_gradients_match_differences();
}

std::vector<double> of(const OpDef& op, const Attributes& attributes, std::vector<double> inputs) {
  OpHarness activation(op, attributes, {Shape{static_cast<std::int64_t>(inputs.size())}}, 1);
  activation.inputs[0] = std::move(inputs);
  return activation.forward();
}

TEST(Activations, AreWhatTheirNamesSay) {
  EXPECT_EQ(of(relu6_op, {}, {-1, 0, 2, 6, 9}), (std::vector<double>{0, 0, 2, 6, 6}));
  EXPECT_EQ(of(leaky_relu_op, {}, {-2, 0, 3}), (std::vector<double>{-0.02, 0, 3}));
  EXPECT_EQ(of(leaky_relu_op, {{"slope", 0.5}}, {-2}), (std::vector<double>{-1}));
  EXPECT_EQ(of(sigmoid_op, {}, {0, -800, 800}), (std::vector<double>{0.5, 0, 1}));
  EXPECT_EQ(of(tanh_op, {}, {0, 1}), (std::vector<double>{0, std::tanh(1.0)}));
  // torch.nn.functional.gelu in float64
  const std::vector<double> exact = of(gelu_op, {}, {1, -0.5});
  EXPECT_NEAR(exact[0], 0.8413447460685429, 1e-15);
  EXPECT_NEAR(exact[1], -0.15426876936299344, 1e-15);
  EXPECT_NEAR(of(gelu_op, {{"tanh", 1}}, {1})[0], 0.8411919906082768, 1e-15);
}

TEST(Activations, Relu6IsFlatAtItsEnds) {
  OpHarness relu6(relu6_op, {}, {Shape{4}}, 1);
  relu6.inputs[0] = {0, 3, 6, 7};
  EXPECT_EQ(relu6.backward({5, 5, 5, 5}).inputs[0], (std::vector<double>{0, 5, 0, 0}));
}

TEST(Activations, NotANumberPassesThrough) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const OpDef* op : {&relu_op, &relu6_op, &leaky_relu_op, &sigmoid_op, &tanh_op, &gelu_op})
    EXPECT_TRUE(std::isnan(of(*op, {}, {nan})[0])) << op->name;
}

TEST(Activations, RefuseWhatCannotBe) {
  expect_refused(tanh_op, {}, {Shape{3}, Shape{3}}, "tanh 'layer': it takes 1 input, found 2");
  expect_refused(leaky_relu_op, {{"slope", -0.5}}, {Shape{3}},
                 "leaky_relu 'layer': it needs a 'slope' of 0 or more, found -0.500000");
}

}  // namespace
}  // namespace regatta
