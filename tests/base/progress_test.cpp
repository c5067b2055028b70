#include "base/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace regatta {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

ProgressState half_way() {
  return {.epoch = 2,
          .epochs = 5,
          .done = 30'000,
          .total = 60'000,
          .images_per_second = 12345.6,
          .loss = 0.12361,
          .left = Seconds(42)};
}

std::ptrdiff_t count(const std::string& text, char c) { return std::ranges::count(text, c); }

TEST(ProgressLine, ShowsEpochBarSpeedLossAndTimeLeft) {
  EXPECT_EQ(progress_line(half_way(), 100),
            "epoch 2/5 [###############---------------]  50%  12346 images/s  loss 0.1236"
            "  0:42 left");
}

TEST(ProgressLine, ATaskThatIsNoTrainingHasNoLoss) {
  ProgressState state = half_way();
  state.task = "part 3/20";
  EXPECT_EQ(progress_line(state, 100),
            "part 3/20 [###############---------------]  50%  12346 images/s  0:42 left");
}

TEST(ProgressLine, FitsAnyWidth) {
  for (int columns = 0; columns < 150; ++columns)
    EXPECT_LE(static_cast<int>(progress_line(half_way(), columns).size()), columns);
}

TEST(ProgressLine, TheBarGoesFirstWhenRoomIsShort) {
  const std::string narrow = progress_line(half_way(), 60);
  EXPECT_THAT(narrow, Not(HasSubstr("[")));
  EXPECT_THAT(narrow, HasSubstr("0:42 left"));
}

TEST(ProgressLine, NeverClaimsMoreThanWasDone) {
  ProgressState almost = half_way();
  almost.done = almost.total - 1;
  EXPECT_THAT(progress_line(almost, 100), HasSubstr(" 99%"));
  almost.total = 0;
  EXPECT_THAT(progress_line(almost, 100), HasSubstr("  0%"));
}

TEST(ProgressLine, SlowTrainingKeepsItsFractions) {
  ProgressState slow = half_way();
  slow.images_per_second = 0.254;
  EXPECT_THAT(progress_line(slow, 100), HasSubstr("0.25 images/s"));
}

TEST(Progress, AfterItsLineOthersBeginTheirOwn) {
  std::ostringstream out;
  {
    Progress progress(out, /*live=*/true, 80);
    progress.update(half_way());
    progress.leave_line();
    out << "interrupted";
  }
  EXPECT_THAT(out.str(), testing::EndsWith("left\ninterrupted"));
}

TEST(Progress, ANoteIsRedrawnOnATerminalAndOneLineElsewhere) {
  for (const bool live : {true, false}) {
    std::ostringstream out;
    {
      Progress progress(out, live, 80);
      progress.note("trying: 0 s");
      progress.note("trying: 1 s");
    }
    EXPECT_EQ(out.str(), live ? "trying: 0 s\r\033[Ktrying: 1 s\n" : "trying: 0 s\n");
  }
}

TEST(DurationText, ReadsAsAClock) {
  EXPECT_EQ(duration_text(Seconds(0)), "0:00");
  EXPECT_EQ(duration_text(Seconds(42.4)), "0:42");
  EXPECT_EQ(duration_text(Seconds(3723)), "1:02:03");
  EXPECT_EQ(duration_text(Seconds(5 * 86400.0)), "5 days");
  EXPECT_EQ(duration_text(Seconds(-1)), "0:00");
}

TEST(Progress, ALiveLineIsDrawnAtMostTenTimesASecond) {
  std::ostringstream out;
  Progress progress(out, true, 80);
  const Progress::Clock::time_point start;
  for (int ms = 0; ms < 1000; ++ms) progress.update(half_way(), start + milliseconds(ms));
  EXPECT_EQ(count(out.str(), '\r') + 1, 10);
  EXPECT_EQ(count(out.str(), '\n'), 0);
}

TEST(Progress, ALogGetsALineEveryTenSecondsAndOneAnEpoch) {
  std::ostringstream out;
  Progress progress(out, false, 80);
  const Progress::Clock::time_point start;
  for (int ms = 0; ms <= 25'000; ms += 10) progress.update(half_way(), start + milliseconds(ms));
  EXPECT_EQ(count(out.str(), '\n'), 2);
  progress.finish_epoch(half_way(), start + seconds(26));
  progress.update(half_way(), start + seconds(30));
  EXPECT_EQ(count(out.str(), '\n'), 3);
  EXPECT_EQ(count(out.str(), '\r'), 0);
  EXPECT_EQ(count(out.str(), '\033'), 0);
}

TEST(Progress, MessagesAndTheEndStandOnLinesOfTheirOwn) {
  std::ostringstream out;
  {
    Progress progress(out, true, 80);
    progress.update(half_way());
    progress.message("checkpoint saved");
    progress.update(half_way(), Progress::Clock::now() + seconds(1));
  }
  EXPECT_THAT(out.str(), HasSubstr("\r\033[Kcheckpoint saved\n"));
  EXPECT_TRUE(out.str().ends_with("left\n"));
}

}  // namespace
}  // namespace regatta
