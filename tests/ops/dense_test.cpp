#include <gtest/gtest.h>

#include "ops/op_harness.h"
#include "ops/ops.h"

namespace regatta {
namespace {

TEST(Dense, GradientsMatchDifferences) {
  const std::vector<Attributes> cases{
      {{"features", 4}}, {{"features", 4}, {"bias", 0}}, {{"features", 5}, {"relu", 1}}};
  for (const Attributes& attributes : cases)
    OpHarness(dense_op, attributes, {Shape{7}}, 3).expect_gradients_match_differences();
}

TEST(Dense, MultipliesByRowsOfTheWeight) {
  OpHarness dense(dense_op, {{"features", 2}}, {Shape{2}}, 1);
  dense.inputs[0] = {1, 10};
  dense.parameters = {{1, 2, 3, 4}, {0.5, -50}};
  EXPECT_EQ(dense.forward(), (std::vector<double>{21.5, -7}));
}

TEST(Dense, ItsReluComesLast) {
  OpHarness dense(dense_op, {{"features", 2}, {"relu", 1}}, {Shape{1}}, 1);
  dense.inputs[0] = {1};
  dense.parameters = {{1, 2}, {-1.5, 0.5}};
  EXPECT_EQ(dense.forward(), (std::vector<double>{0, 2.5}));
}

TEST(Dense, RefusesWhatCannotBe) {
  expect_refused(dense_op, {{"features", 4}}, {Shape{3, 8, 8}},
                 "dense 'layer': its input must be a vector, found 3x8x8; flatten it first");
  expect_refused(dense_op, {}, {Shape{3}},
                 "dense 'layer': it needs 'features' of at least 1, found 0");
}

}  // namespace
}  // namespace regatta
