// Kernels as a GPU notes them, brought to the record's clock and to their tasks.
#include "exec/kernel_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The record began when CUPTI's clock showed this.
constexpr std::uint64_t origin = 1'700'000'000'000'000'000;
const ClockMatch same_pace{{origin, 0}, {origin + 1'000'000, 1'000'000}};

cuda::KernelRun kernel(std::uint32_t correlation, std::uint64_t start, std::uint64_t end,
                       std::int32_t device = 0) {
  return {0, device, correlation, origin + start, origin + end};
}

std::vector<std::int64_t> tasks_of(const std::vector<KernelTimes::Found>& found) {
  std::vector<std::int64_t> tasks;
  for (const KernelTimes::Found& each : found) tasks.push_back(each.task);
  return tasks;
}

TEST(ClockMatch, FollowsAClockThatIsFarAwayAndRunsFaster) {
  // A thousandth too fast, and an hour long.
  const ClockMatch clock{{origin, 5'000}, {origin + 3'603'600'000'000, 3'600'000'005'000}};
  EXPECT_EQ(clock.to_record(origin), 5'000);
  EXPECT_NEAR(static_cast<double>(clock.to_record(origin + 1'001'000'000)), 1'000'005'000.0, 1.0);
  EXPECT_NEAR(static_cast<double>(clock.to_record(origin + 3'603'600'000'000)), 3'600'000'005'000.0,
              1.0);
  EXPECT_LT(clock.to_record(origin - 1'001'000), 5'000);
}

TEST(ClockMatch, WithOneReadingKeepsThePace) {
  const ClockMatch clock{{origin, 700}, {origin, 700}};
  EXPECT_EQ(clock.to_record(origin + 300), 1'000);
}

TEST(KernelTimes, GoByTheMarkOfTheirLaunchEvenOutsideTheTasksTime) {
  KernelTimes times;
  times.add({{"first", "second"},
             {kernel(7, 90, 110), kernel(7, 120, 130), kernel(8, 140, 190)},
             {{7, 1001}, {8, 1002}}});
  times.add(DeviceTask{40, 1001, 0, 0, 100});
  times.add(DeviceTask{41, 1002, 0, 100, 200});
  const auto found = times.match(same_pace, false);
  EXPECT_THAT(tasks_of(found), ElementsAre(40, 40, 41));
  EXPECT_EQ(found[1].start, 120);
  EXPECT_EQ(found[1].end, 130);
  EXPECT_EQ(times.waiting(), 0u);
}

TEST(KernelTimes, WithoutAMarkGoToTheTaskTheyShareMostTimeWith) {
  KernelTimes times;
  times.add(DeviceTask{1, 1001, 0, 0, 100});
  times.add(DeviceTask{2, 1002, 0, 100, 200});
  times.add(DeviceTask{3, 1003, 1, 0, 200});
  times.add({{"k"},
             {kernel(1, 10, 20), kernel(2, 90, 140), kernel(3, 150, 160, 1), kernel(4, 500, 600)},
             {}});
  EXPECT_THAT(tasks_of(times.match(same_pace, true)), ElementsAre(1, 2, 3));
  EXPECT_EQ(times.waiting(), 0u);
}

TEST(KernelTimes, WaitForATaskOrAMarkThatComesLater) {
  KernelTimes times;
  times.add({{"k"}, {kernel(5, 110, 120)}, {}});
  times.add(DeviceTask{1, 1001, 0, 0, 100});
  EXPECT_THAT(times.match(same_pace, false), IsEmpty());
  EXPECT_EQ(times.waiting(), 1u);
  times.add({{}, {}, {{5, 1002}}});
  times.add(DeviceTask{3, 1003, 0, 300, 400});  // began later, and is known before
  EXPECT_THAT(times.match(same_pace, false), IsEmpty());
  times.add(DeviceTask{2, 1002, 0, 100, 200});
  EXPECT_THAT(tasks_of(times.match(same_pace, false)), ElementsAre(2));
}

TEST(KernelTimes, OfListsThatAreNotRecordedAreLeftOut) {
  KernelTimes times;
  times.add({{"k"}, {kernel(1, 10, 20), kernel(2, 30, 40)}, {{1, 999}}});
  times.add(DeviceTask{1, 1001, 0, 100, 200});
  EXPECT_THAT(times.match(same_pace, true), IsEmpty());
  EXPECT_EQ(times.waiting(), 0u);
}

TEST(KernelTimes, KeepNamesFromAllNotes) {
  KernelTimes times;
  times.add({{"a"}, {}, {}});
  times.add({{"b", "c"}, {}, {}});
  EXPECT_EQ(times.name(0), "a");
  EXPECT_EQ(times.name(2), "c");
}

TEST(KernelLabel, IsShortAndReadable) {
  // void regatta::cuda::(anonymous namespace)::take_step(Step, unsigned long)
  EXPECT_EQ(kernel_label("_ZN7regatta4cuda12_GLOBAL__N_19take_stepENS1_4StepEm"), "take_step");
  EXPECT_EQ(kernel_label("_Z4fillIfEvPT_m"), "fill<float>");
  EXPECT_EQ(kernel_label("sm90_xmma_fprop_implicit_gemm"), "sm90_xmma_fprop_implicit_gemm");
  EXPECT_EQ(kernel_label(std::string(500, 'x')).size(), 120u);
  EXPECT_EQ(kernel_label(""), "");
}

}  // namespace
}  // namespace regatta
