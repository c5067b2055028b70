#include "trace/energy.h"

#include <gtest/gtest.h>

namespace regatta::trace {
namespace {

std::vector<Counter> counters() {
  return {{"energy cpu", "J", "measured", 1, 10, 100}, {"energy cpu", "J", "measured", 2, 20, 4},
          {"energy gpu", "J", "measured", 2, 20, 6},   {"energy cpu", "J", "estimate", 3, 30, 8},
          {"energy gpu", "J", "estimate", 3, 30, 2},   {"memory", "bytes", "measured", 3, 30, 1e9}};
}

TEST(Energy, IsThatOfTheStepsAskedFor) {
  const auto steady = energy_of(counters(), 2, 3);
  ASSERT_TRUE(steady);
  EXPECT_DOUBLE_EQ(steady->joules, 20);
  EXPECT_DOUBLE_EQ(steady->a_step(), 10) << "the first step fills the pipeline and does not count";
  EXPECT_DOUBLE_EQ(energy_of(counters(), 0, 0)->a_step(), 40);
}

TEST(Energy, IsMeasuredOnlyIfAllOfItIs) {
  EXPECT_TRUE(energy_of(counters(), 1, 2)->measured);
  EXPECT_FALSE(energy_of(counters(), 2, 3)->measured);
}

TEST(Energy, OfStepsWithoutJoulesIsUnknown) {
  EXPECT_FALSE(energy_of(counters(), 4, 9));
  EXPECT_FALSE(energy_of({}, 0, 0));
}

}  // namespace
}  // namespace regatta::trace
