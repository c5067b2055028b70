// Joules of jobs side by side add up to what the machine counted.
#include "tickets/shared_energy.h"

#include <gtest/gtest.h>

#include <optional>

namespace regatta::tickets {
namespace {

// A machine that counts 100 J between any two looks.
std::vector<Energy> hundred() { return {{"cpu package-0", 60, true}, {"gpu 0", 40, true}}; }

TEST(SharedEnergy, OfOneJobIsAllThatWasCountedSinceItBegan) {
  SharedEnergy all(hundred);
  SharedEnergy::Share job(all, 4);
  EXPECT_DOUBLE_EQ(job.read().joules, 100);
  EXPECT_DOUBLE_EQ(job.read().joules, 200);
  EXPECT_TRUE(job.read().measured);
}

TEST(SharedEnergy, OfJobsSideBySideIsCountedOnce) {
  SharedEnergy all(hundred);
  std::optional<SharedEnergy::Share> first(std::in_place, all, 2);
  SharedEnergy::Share second(all, 2);                // 100 J to the first
  EXPECT_DOUBLE_EQ(first->read().joules, 100 + 50);  // then 100 J to both
  first.reset();                                     // 100 J to both
  EXPECT_DOUBLE_EQ(second.read().joules, 50 + 50 + 100);
}

TEST(SharedEnergy, AnEstimateIsForTheCpusOfTheJob) {
  SharedEnergy all([] { return std::vector<Energy>{{"cpu", 8, false}}; });
  SharedEnergy::Share small(all, 1), large(all, 3);
  EXPECT_DOUBLE_EQ(large.read().joules, 24);
  EXPECT_DOUBLE_EQ(small.read().joules, 8 * 3) << "for each of three looks";
  EXPECT_FALSE(small.read().measured);
}

}  // namespace
}  // namespace regatta::tickets
