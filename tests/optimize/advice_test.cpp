// Which parallelism suits a layer, by hand.
#include "optimize/advice.h"

#include <gtest/gtest.h>

namespace regatta::optimize {
namespace {

TEST(Advice, DataParallelismWhereGradientsHideBehindTheWork) {
  // 4 nodes, 64 samples, 16 each of 10 ms; 1 MB of gradients at 1 MB/s: 1.5 s around the ring.
  const LayerFacts convolution{"conv", 1e6, 1e6, 1e6, 0.01};
  const Advice slow = advice_for(convolution, {4, 1e6, 64});
  EXPECT_DOUBLE_EQ(slow.work_s, 0.16);
  EXPECT_DOUBLE_EQ(slow.data_s, 1.5);
  EXPECT_TRUE(slow.gradients_cost_more());
  EXPECT_EQ(slow.suits, Parallelism::data) << "the others would send 64 MB";
  EXPECT_DOUBLE_EQ(slow.data_from_batch, 600) << "150 samples of 10 ms on each node";
  EXPECT_FALSE(advice_for(convolution, {4, 1e8, 64}).gradients_cost_more());
}

TEST(Advice, ModelParallelismWhereWeightsAreManyAndInputsFew) {
  const LayerFacts dense{"fc", 4e8, 1e5, 2e5, 1e-4};
  const Advice advice = advice_for(dense, {4, 1e8, 64});
  EXPECT_TRUE(advice.gradients_cost_more());
  EXPECT_EQ(advice.suits, Parallelism::model);
}

TEST(Advice, APipelineWhereTheLayerGivesLittleAway) {
  const LayerFacts dense{"fc", 4e8, 1e5, 4e3, 1e-4};
  EXPECT_EQ(advice_for(dense, {4, 1e8, 64}).suits, Parallelism::pipeline);
}

TEST(Advice, OnOneNodeNothingIsSent) {
  const Advice alone = advice_for({"fc", 4e8, 1e5, 4e3, 1e-4}, {1, 1e8, 64});
  EXPECT_EQ(alone.data_s, 0);
  EXPECT_EQ(alone.suits, Parallelism::data);
}

}  // namespace
}  // namespace regatta::optimize
