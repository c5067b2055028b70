#include <gtest/gtest.h>

#include <cmath>

#include "ops/op_harness.h"
#include "ops/ops.h"
#include "regatta/layers.h"

namespace regatta {
namespace {

using Pair = std::vector<std::int64_t>;

TEST(Conv, GradientsMatchDifferences) {
  const std::vector<Attributes> cases{
      {{"channels", 3}, {"kernel", Pair{1, 1}}},
      {{"channels", 3}, {"kernel", Pair{3, 3}}, {"padding", Pair{1, 1}}, {"bias", 1}},
      {{"channels", 2}, {"kernel", Pair{3, 2}}, {"stride", Pair{2, 3}}, {"padding", Pair{2, 0}}},
      {{"channels", 1}, {"kernel", Pair{2, 5}}, {"stride", Pair{3, 1}}, {"padding", Pair{0, 3}}},
      {{"channels", 3}, {"kernel", Pair{3, 3}}, {"stride", Pair{2, 2}}, {"bias", 1}, {"relu", 1}},
  };
  for (const Attributes& attributes : cases)
    OpHarness(conv_op, attributes, {Shape{2, 7, 5}}, 3).expect_gradients_match_differences();
}

TEST(Conv, GradientsOfGroupsAndDilationMatchDifferences) {
  const std::vector<Attributes> cases{
      {{"channels", 4}, {"kernel", Pair{3, 3}}, {"groups", 2}, {"bias", 1}, {"relu", 1}},
      {{"channels", 4}, {"kernel", Pair{3, 1}}, {"groups", 4}, {"padding", Pair{1, 0}}},
      {{"channels", 8}, {"kernel", Pair{2, 2}}, {"groups", 4}},
      {{"channels", 3}, {"kernel", Pair{3, 2}}, {"dilation", Pair{2, 3}}, {"padding", 1}},
      {{"channels", 2}, {"kernel", Pair{2, 3}}, {"padding", Pair{0, 2, 1, 0}}, {"stride", 2}},
  };
  for (const Attributes& attributes : cases)
    OpHarness(conv_op, attributes, {Shape{4, 6, 5}}, 2).expect_gradients_match_differences();
}

TEST(Conv, AFilterSeesItsOwnGroupAlone) {
  OpHarness conv(conv_op, {{"channels", 4}, {"kernel", 1}, {"groups", 2}}, {Shape{2, 1, 1}}, 1);
  conv.inputs[0] = {1, 10};
  conv.parameters = {{1, 2, 3, 4}};
  EXPECT_EQ(conv.forward(), (std::vector<double>{1, 2, 30, 40}));
}

TEST(Conv, PaddingMayDifferOnEverySide) {
  OpHarness conv(conv_op, {{"channels", 1}, {"kernel", 1}, {"padding", Pair{1, 0, 0, 2}}},
                 {Shape{1, 1, 1}}, 1);
  conv.inputs[0] = {5};
  conv.parameters = {{1}};
  EXPECT_EQ(conv.node().shape, (Shape{1, 2, 3}));
  EXPECT_EQ(conv.forward(), (std::vector<double>{0, 0, 0, 5, 0, 0}));
}

TEST(Conv, SumsTheProductsUnderTheWindow) {
  OpHarness conv(conv_op, {{"channels", 1}, {"kernel", Pair{2, 2}}, {"bias", 1}}, {Shape{1, 2, 3}},
                 1);
  conv.inputs[0] = {1, 2, 3, 4, 5, 6};
  conv.parameters = {{1, 10, 100, 1000}, {0.5}};
  EXPECT_EQ(conv.forward(), (std::vector<double>{5421.5, 6532.5}));
}

TEST(Conv, PaddingIsZero) {
  OpHarness conv(conv_op, {{"channels", 1}, {"kernel", Pair{1, 3}}, {"padding", Pair{0, 1}}},
                 {Shape{1, 1, 2}}, 1);
  conv.inputs[0] = {1, 2};
  conv.parameters = {{1, 10, 100}};
  EXPECT_EQ(conv.forward(), (std::vector<double>{210, 21}));
}

TEST(Conv, CountsTwoFlopsAMultiplyAdd) {
  const Shape input{3, 8, 8};
  const OpHarness conv(conv_op, {{"channels", 4}, {"kernel", Pair{3, 3}}}, {input}, 1);
  const Cost cost = conv_op.cost(conv.node(), std::span(&input, 1));
  EXPECT_EQ(cost.forward_flops, 2 * 4 * 6 * 6 * 3 * 9);
  EXPECT_EQ(cost.backward_flops, 2 * cost.forward_flops);
}

TEST(Conv, StartsAsPyTorchDoes) {
  const Shape input{3, 8, 8};
  Attributes attributes{{"channels", 4}, {"kernel", Pair{3, 3}}, {"bias", 1}};
  const OpHarness plain(conv_op, attributes, {input}, 1);
  const auto specs = conv_op.parameters(plain.node(), std::span(&input, 1));
  ASSERT_EQ(specs.size(), 2u);
  EXPECT_EQ(specs[0].shape, (Shape{4, 3, 3, 3}));
  EXPECT_EQ(specs[0].init, (Init{Init::Kind::uniform, 1 / std::sqrt(27.0)}));
  EXPECT_EQ(specs[1].init, specs[0].init);

  attributes.set("init", static_cast<std::int64_t>(WeightStart::Kind::he_normal_out));
  const OpHarness residual(conv_op, attributes, {input}, 1);
  EXPECT_EQ(conv_op.parameters(residual.node(), std::span(&input, 1))[0].init,
            (Init{Init::Kind::normal, std::sqrt(2.0 / 36)}));
}

TEST(Conv, RefusesWhatCannotBe) {
  expect_refused(conv_op, {{"channels", 4}, {"kernel", Pair{7, 7}}, {"padding", Pair{1, 1}}},
                 {Shape{3, 3, 3}}, "conv 'layer': kernel 7x7 is larger than its padded input 5x5");
  expect_refused(conv_op, {{"channels", 4}, {"kernel", Pair{3, 3}}}, {Shape{120}},
                 "conv 'layer': its input must be channels x height x width, found 120");
  expect_refused(conv_op, {{"kernel", Pair{3, 3}}}, {Shape{3, 8, 8}},
                 "conv 'layer': it needs 'channels' of at least 1, found 0");
  expect_refused(conv_op, {{"channels", 4}}, {Shape{3, 8, 8}},
                 "conv 'layer': kernel 0x0 is below 1x1");
  expect_refused(conv_op, {{"channels", 4}, {"kernel", Pair{3, 3}}, {"stride", Pair{0, 1}}},
                 {Shape{3, 8, 8}}, "conv 'layer': stride 0x1 is below 1x1");
  expect_refused(conv_op, {{"channels", 4}, {"kernel", Pair{3, 3}}, {"padding", Pair{-1, 0}}},
                 {Shape{3, 8, 8}}, "conv 'layer': padding -1x0 is below 0x0");
  expect_refused(conv_op, {{"channels", 4}, {"kernel", Pair{3, 3}}}, {Shape{3, 8, 8}, Shape{3}},
                 "conv 'layer': it takes 1 input, found 2");
  expect_refused(conv_op, {{"channels", 4}, {"kernel", Pair{3, 3}}, {"dilation", 4}},
                 {Shape{3, 8, 8}},
                 "conv 'layer': kernel 3x3 with dilation 4x4 is larger than its padded input 8x8");
  expect_refused(conv_op, {{"channels", 4}, {"kernel", 1}, {"dilation", 0}}, {Shape{3, 8, 8}},
                 "conv 'layer': dilation 0x0 is below 1x1");
  expect_refused(conv_op, {{"channels", 4}, {"kernel", 1}, {"groups", 2}}, {Shape{3, 8, 8}},
                 "conv 'layer': groups 2 must divide its 3 input and 4 output channels");
  expect_refused(conv_op, {{"channels", 4}, {"kernel", 1}, {"groups", 0}}, {Shape{3, 8, 8}},
                 "conv 'layer': it needs 'groups' of at least 1, found 0");
}

}  // namespace
}  // namespace regatta
