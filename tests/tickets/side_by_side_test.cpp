// Jobs side by side.
#include "tickets/side_by_side.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace regatta::tickets {
namespace {

// Runs jobs on a machine that does `rate(slots)` images a second in all, until it settles.
template <class Rate>
int settled_on(SideBySide trial, const Rate& rate) {
  for (int jobs = 0; jobs < 1000 && !trial.decided(); ++jobs)
    trial.measured(trial.slots(), rate(trial.slots()) / trial.slots());
  EXPECT_TRUE(trial.decided());
  return trial.slots();
}

TEST(SideBySide, AMachineThatIsBusyWithOneJobStaysAtOne) {
  EXPECT_EQ(settled_on(SideBySide::by_trial(16), [](int) { return 100.0; }), 1);
}

TEST(SideBySide, SlotsDoubleUntilTheyBringNothing) {
  EXPECT_EQ(
      settled_on(SideBySide::by_trial(16), [](int slots) { return 100.0 * std::min(slots, 4); }),
      4);
  EXPECT_EQ(settled_on(SideBySide::by_trial(2), [](int slots) { return 100.0 * slots; }), 2);
}

TEST(SideBySide, JobsThatRanBesideAnotherNumberDoNotCount) {
  SideBySide trial = SideBySide::by_trial(4);
  trial.measured(2, 1e9);
  EXPECT_EQ(trial.slots(), 1);
  trial.measured(1, 100);
  EXPECT_EQ(trial.slots(), 2);
  trial.measured(2, 90);  // one of two
  EXPECT_EQ(trial.slots(), 2);
}

TEST(SideBySide, AFixedNumberStays) {
  SideBySide fixed(3);
  fixed.measured(3, 1);
  EXPECT_EQ(fixed.slots(), 3);
  EXPECT_TRUE(fixed.decided());
}

}  // namespace
}  // namespace regatta::tickets
