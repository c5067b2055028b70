#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tune/trials.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

TEST(TrialNote, SaysAtOnceThatPlansAreTriedAndForHowLong) {
  testing::internal::CaptureStderr();
  { TrialNote(Seconds(12)).on_turn(); }
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("trying plans out: 0 s of at most 12 s"));
}

TEST(LongestTrials, AreASmallPartOfTheRun) {
  EXPECT_EQ(longest_trials(1000, Seconds(0.1)), Seconds(3));
  EXPECT_EQ(longest_trials(1'000'000, Seconds(0.1)), Seconds(15));
  EXPECT_EQ(longest_trials(std::nullopt, Seconds(0.1)), Seconds(15));
}

}  // namespace
}  // namespace regatta
