#include <gtest/gtest.h>

#include "ops/op_harness.h"
#include "ops/ops.h"

namespace regatta {
namespace {

TEST(GlobalAveragePool, GradientsMatchDifferences) {
  OpHarness(global_average_pool_op, {}, {Shape{3, 5, 3}}, 2).expect_gradients_match_differences();
}

TEST(GlobalAveragePool, MakesAVectorOfChannelMeans) {
  OpHarness pool(global_average_pool_op, {}, {Shape{2, 1, 2}}, 1);
  pool.inputs[0] = {1, 2, 10, 20};
  EXPECT_EQ(pool.node().shape, Shape{2});
  EXPECT_EQ(pool.forward(), (std::vector<double>{1.5, 15}));
}

TEST(GlobalAveragePool, RefusesAVector) {
  expect_refused(
      global_average_pool_op, {}, {Shape{5}},
      "global_average_pool 'layer': its input must be channels x height x width, found 5");
}

}  // namespace
}  // namespace regatta
