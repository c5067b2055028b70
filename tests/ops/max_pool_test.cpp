#include <gtest/gtest.h>

#include <cmath>

#include "ops/op_harness.h"
#include "ops/ops.h"

namespace regatta {
namespace {

using Pair = std::vector<std::int64_t>;

TEST(MaxPool, GradientsMatchDifferences) {
  const std::vector<Attributes> cases{
      {{"kernel", Pair{2, 2}}},
      {{"kernel", Pair{3, 3}}, {"stride", Pair{2, 2}}, {"padding", Pair{1, 1}}},
      {{"kernel", Pair{3, 2}}, {"stride", Pair{1, 3}}, {"padding", Pair{1, 0}}},
      {{"kernel", Pair{3, 2}}, {"stride", Pair{2, 2}}, {"padding", Pair{1, 0, 0, 1}}},
      {{"kernel", Pair{3, 3}}, {"stride", Pair{2, 2}}, {"ceil", 1}},
      {{"kernel", Pair{2, 3}}, {"stride", Pair{1, 1}}, {"dilation", Pair{3, 2}}},
  };
  for (const Attributes& attributes : cases)
    OpHarness(max_pool_op, attributes, {Shape{2, 7, 5}}, 3).expect_gradients_match_differences();
}

TEST(MaxPool, TilesTheImageUnlessToldOtherwiseAndDropsTheRest) {
  const OpHarness pool(max_pool_op, {{"kernel", Pair{2, 3}}}, {Shape{4, 7, 11}}, 1);
  EXPECT_EQ(pool.node().shape, (Shape{4, 3, 3}));
}

TEST(MaxPool, ALastWindowCountsWithCeilUnlessItStartsBeyondTheImage) {
  Attributes attributes{{"kernel", Pair{3, 3}}, {"stride", Pair{2, 2}}};
  EXPECT_EQ(OpHarness(max_pool_op, attributes, {Shape{4, 8, 7}}, 1).node().shape, (Shape{4, 3, 3}));
  attributes.set("ceil", std::int64_t{1});
  EXPECT_EQ(OpHarness(max_pool_op, attributes, {Shape{4, 8, 7}}, 1).node().shape, (Shape{4, 4, 3}));
  // torch.nn.MaxPool2d(2, 2, 1, ceil_mode=True) of 3x4: the third column starts on the image, a
  // fourth would not
  const Attributes padded{{"kernel", 2}, {"stride", 2}, {"padding", 1}, {"ceil", 1}};
  EXPECT_EQ(OpHarness(max_pool_op, padded, {Shape{1, 3, 4}}, 1).node().shape, (Shape{1, 2, 3}));
}

TEST(MaxPool, NotANumberWins) {
  OpHarness pool(max_pool_op, {{"kernel", Pair{2, 2}}}, {Shape{1, 2, 2}}, 1);
  pool.inputs[0] = {1, std::nan(""), 7, 2};
  EXPECT_TRUE(std::isnan(pool.forward()[0]));
}

TEST(MaxPool, PaddingNeverWins) {
  OpHarness pool(max_pool_op, {{"kernel", Pair{2, 2}}, {"padding", Pair{1, 1}}}, {Shape{1, 2, 2}},
                 1);
  pool.inputs[0] = {-1, -2, -3, -4};
  EXPECT_EQ(pool.forward(), (std::vector<double>{-1, -2, -3, -4}));
}

TEST(MaxPool, TheFirstOfEqualsTakesTheGradient) {
  OpHarness pool(max_pool_op, {{"kernel", Pair{2, 2}}}, {Shape{1, 2, 2}}, 1);
  pool.inputs[0] = {1, 7, 7, 7};
  EXPECT_EQ(pool.backward({5}).inputs[0], (std::vector<double>{0, 5, 0, 0}));
}

TEST(MaxPool, AByteRemembersTheWinnerUnlessTheWindowIsHuge) {
  const OpHarness small(max_pool_op, {{"kernel", Pair{15, 17}}}, {Shape{1, 32, 32}}, 1);
  const OpHarness huge(max_pool_op, {{"kernel", Pair{16, 16}}}, {Shape{1, 32, 32}}, 1);
  EXPECT_EQ(max_pool_op.stash_bytes(small.node(), 10), 10);
  EXPECT_EQ(max_pool_op.stash_bytes(huge.node(), 10), 40);
}

TEST(MaxPool, RefusesWhatCannotBe) {
  expect_refused(max_pool_op, {{"kernel", Pair{2, 2}}}, {Shape{6, 1, 8}},
                 "max_pool 'layer': kernel 2x2 is larger than its padded input 1x8");
  expect_refused(max_pool_op, {{"kernel", Pair{3, 3}}, {"padding", Pair{2, 1}}}, {Shape{6, 8, 8}},
                 "max_pool 'layer': padding 2x1 is more than half its kernel 3x3");
  expect_refused(max_pool_op,
                 {{"kernel", Pair{2, 2}}, {"stride", 1}, {"padding", 1}, {"dilation", 3}},
                 {Shape{6, 2, 2}},
                 "max_pool 'layer': with dilation 3x3 and padding 1x1 a window sees nothing of its "
                 "input 6x2x2");
  expect_refused(max_pool_op, {}, {Shape{6, 8, 8}}, "max_pool 'layer': kernel 0x0 is below 1x1");
}

}  // namespace
}  // namespace regatta
