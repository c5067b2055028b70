#include "platform/distance.h"

#include <gtest/gtest.h>

#include "platform/machine.h"

namespace regatta {
namespace {

TEST(Distance, ALineTakesSomeTimeBetweenTwoCpus) {
  const double seconds = line_seconds();
  if (available_cpus() < 2) {
    EXPECT_EQ(seconds, 0);
  } else {
    EXPECT_GT(seconds, 1e-10);
    EXPECT_LT(seconds, 1);
  }
}

TEST(Distance, TwoCpusTakeSomeTimeToReckon) {
  const double seconds = pair_seconds();
  if (available_cpus() < 2) {
    EXPECT_EQ(seconds, 0);
  } else {
    EXPECT_GT(seconds, 1e-5);
    EXPECT_LT(seconds, 1);
  }
}

TEST(Distance, MeasuringEndsHoweverFarCpusAre) {
  int calls = 0;
  EXPECT_EQ(measure_undisturbed([&] { return ++calls; }, 0, 2), calls);
  EXPECT_GE(calls, 1);
  EXPECT_LE(calls, 2);
}

}  // namespace
}  // namespace regatta
