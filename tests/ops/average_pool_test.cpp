#include <gtest/gtest.h>

#include "ops/op_harness.h"
#include "ops/ops.h"

namespace regatta {
namespace {

using Numbers = std::vector<std::int64_t>;

TEST(AveragePool, GradientsMatchDifferences) {
  const std::vector<Attributes> cases{
      {{"kernel", Numbers{2, 2}}},
      {{"kernel", Numbers{3, 3}}, {"stride", Numbers{2, 2}}, {"padding", Numbers{1, 1}}},
      {{"kernel", Numbers{3, 2}},
       {"stride", Numbers{2, 1}},
       {"padding", Numbers{0, 1, 1, 0}},
       {"count_padding", 0}},
      {{"kernel", Numbers{3, 3}},
       {"stride", Numbers{2, 2}},
       {"padding", Numbers{1, 1}},
       {"ceil", 1}},
  };
  for (const Attributes& attributes : cases)
    OpHarness(average_pool_op, attributes, {Shape{2, 6, 5}}, 2)
        .expect_gradients_match_differences();
}

TEST(AveragePool, PaddingCountsUnlessToldOtherwise) {
  Attributes attributes{{"kernel", Numbers{2, 2}}, {"padding", Numbers{1, 1}}};
  OpHarness counted(average_pool_op, attributes, {Shape{1, 2, 2}}, 1);
  counted.inputs[0] = {4, 8, 12, 16};
  EXPECT_EQ(counted.forward(), (std::vector<double>{1, 2, 3, 4}));
  attributes.set("count_padding", std::int64_t{0});
  OpHarness alone(average_pool_op, attributes, {Shape{1, 2, 2}}, 1);
  alone.inputs[0] = {4, 8, 12, 16};
  EXPECT_EQ(alone.forward(), (std::vector<double>{4, 8, 12, 16}));
}

TEST(AveragePool, WhatALastWindowReachesBeyondThePaddingNeverCounts) {
  // torch.nn.AvgPool2d((1, 3), (1, 2), (0, 1), ceil_mode=True) of 1, 2, 3, 4
  OpHarness pool(average_pool_op,
                 {{"kernel", Numbers{1, 3}},
                  {"stride", Numbers{1, 2}},
                  {"padding", Numbers{0, 1}},
                  {"ceil", 1}},
                 {Shape{1, 1, 4}}, 1);
  pool.inputs[0] = {3, 6, 9, 12};
  const std::vector<double> found = pool.forward();
  ASSERT_EQ(found.size(), 3u);
  EXPECT_DOUBLE_EQ(found[0], 3);
  EXPECT_DOUBLE_EQ(found[1], 9);
  EXPECT_DOUBLE_EQ(found[2], 6);
}

TEST(AveragePool, RefusesWhatCannotBe) {
  expect_refused(average_pool_op, {{"kernel", Numbers{2, 2}}, {"dilation", Numbers{2, 2}}},
                 {Shape{1, 8, 8}}, "average_pool 'layer': an average has no dilation");
  expect_refused(average_pool_op, {{"kernel", Numbers{2, 2}}, {"padding", Numbers{0, 0, 2, 0}}},
                 {Shape{1, 8, 8}},
                 "average_pool 'layer': padding 0x0 before and 2x0 after is more than half its "
                 "kernel 2x2");
  expect_refused(average_pool_op, {{"kernel", Numbers{2, 2}}, {"padding", Numbers{1, 1, 1}}},
                 {Shape{1, 8, 8}},
                 "average_pool 'layer': 'padding' takes 1, 2 or 4 numbers, found 3");
}

TEST(AdaptiveAveragePool, GradientsMatchDifferences) {
  for (const Numbers& output : {Numbers{1, 1}, Numbers{3, 2}, Numbers{7, 5}, Numbers{9, 8}})
    OpHarness(adaptive_average_pool_op, {{"output", output}}, {Shape{2, 7, 5}}, 2)
        .expect_gradients_match_differences();
}

TEST(AdaptiveAveragePool, BinsOverlapWhereTheyMust) {
  OpHarness pool(adaptive_average_pool_op, {{"output", Numbers{1, 2}}}, {Shape{1, 1, 3}}, 1);
  pool.inputs[0] = {1, 2, 4};
  EXPECT_EQ(pool.forward(), (std::vector<double>{1.5, 3}));
}

TEST(AdaptiveAveragePool, RefusesWhatCannotBe) {
  expect_refused(adaptive_average_pool_op, {{"output", Numbers{0, 2}}}, {Shape{1, 8, 8}},
                 "adaptive_average_pool 'layer': it needs 'output' of at least 1x1, found 0x2");
  expect_refused(adaptive_average_pool_op, {{"output", Numbers{1, 1}}}, {Shape{8}},
                 "adaptive_average_pool 'layer': its input must be channels x height x width, "
                 "found 8");
}

}  // namespace
}  // namespace regatta
