#include <gtest/gtest.h>

#include <cmath>

#include "ops/op_harness.h"
#include "ops/ops.h"

namespace regatta {
namespace {

TEST(LayerNorm, GradientsMatchDifferences) {
  OpHarness(layer_norm_op, {}, {Shape{3, 4, 2}}, 3).expect_gradients_match_differences();
  OpHarness(layer_norm_op, {{"epsilon", 0.1}}, {Shape{7}}, 2).expect_gradients_match_differences();
}

TEST(LayerNorm, NormalisesEachSampleAlone) {
  OpHarness norm(layer_norm_op, {{"epsilon", 1e-12}}, {Shape{2}}, 2);
  norm.inputs[0] = {1, 3, 100, 300};
  norm.parameters = {{1, 10}, {0, 0.5}};
  const std::vector<double> found = norm.forward();
  EXPECT_NEAR(found[0], -1, 1e-9);
  EXPECT_NEAR(found[1], 10.5, 1e-9);
  EXPECT_NEAR(found[2], -1, 1e-9);
  EXPECT_NEAR(found[3], 10.5, 1e-9);
}

TEST(LayerNorm, HasAWeightAndABiasForEachElement) {
  const Shape input{3, 4, 2};
  const OpHarness norm(layer_norm_op, {}, {input}, 1);
  const auto specs = layer_norm_op.parameters(norm.node(), std::span(&input, 1));
  ASSERT_EQ(specs.size(), 2u);
  EXPECT_EQ(specs[0].shape, input);
  EXPECT_EQ(specs[0].init.kind, Init::Kind::ones);
  EXPECT_EQ(specs[1].init.kind, Init::Kind::zeros);
}

TEST(LayerNorm, RefusesWhatCannotBe) {
  expect_refused(layer_norm_op, {{"epsilon", 0.0}}, {Shape{3}},
                 "layer_norm 'layer': it needs an 'epsilon' above 0, found 0.000000");
}

}  // namespace
}  // namespace regatta
