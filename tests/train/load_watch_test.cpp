#include "train/load_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "data/load_clock.h"

namespace regatta {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Clock = LoadWatch::Clock;

Plan cpu_plan(int workers, int team = 1) {
  Plan plan;
  DeviceGroup group;
  group.kind = DeviceKind::cpu;
  group.workers = workers;
  group.team = team;
  plan.nodes = {{}};
  plan.nodes.front().groups = {group};
  return plan;
}

TEST(LoadWatch, CountsTheTimeOfLoads) {
  LoadWatch watch(cpu_plan(2));
  StepInput input;
  int calls = 0;
  input.load = [&](auto...) {
    ++calls;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  };
  const auto step = watch.watch(input);
  const Clock::time_point begin = Clock::now();
  input.load(0, 1, nullptr, nullptr);
  input.load(1, 1, nullptr, nullptr);
  EXPECT_EQ(calls, 2);
  // 40 ms of 2 workers in a step that is said to last 100 ms.
  const LoaderUse share = watch.of_step(*step, begin, begin + std::chrono::milliseconds(100));
  EXPECT_GE(share.share, 0.2);
  EXPECT_GE(share.waited.count(), 0.02);
  EXPECT_DOUBLE_EQ(share.waited_share(), share.waited.count() / 0.1);
  EXPECT_EQ(watch.of_epoch().share, share.share);
  EXPECT_EQ(watch.of_epoch().share, 0);
}

// All threads of a team load side by side, and their worker is busy only as long as one of them.
TEST(LoadWatch, ATeamLoadsAsOneWorker) {
  LoadWatch watch(cpu_plan(1, 4));
  StepInput input;
  Clock::duration all{};
  input.load = [&](auto...) {
    const Clock::time_point begin = Clock::now();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    all += Clock::now() - begin;
  };
  const auto step = watch.watch(input);
  const Clock::time_point begin = Clock::now();
  for (int thread = 0; thread < 4; ++thread) input.load(thread, 1, nullptr, nullptr);
  const Clock::duration loads = Clock::now() - begin;
  const LoaderUse use = watch.of_step(*step, begin, begin + std::chrono::seconds(100));
  EXPECT_GE(use.times.seconds(), Seconds(all).count() / 4);
  EXPECT_LE(use.times.seconds(), Seconds(loads).count() / 4);
  EXPECT_DOUBLE_EQ(use.share, use.times.seconds() / 100);
}

// A GPU's chunk is loaded in pieces, and computed when the last of them is there.
TEST(LoadWatch, AGpuWaitsForItsWholeChunk) {
  Plan plan;
  plan.loaders = 2;
  LoadWatch watch(plan);
  StepInput input;
  input.load = [](auto...) { std::this_thread::sleep_for(std::chrono::milliseconds(10)); };
  const auto step = watch.watch(input);
  const Clock::time_point begin = Clock::now();
  input.load(0, 1, nullptr, nullptr);
  input.load(1, 1, nullptr, nullptr);
  EXPECT_GE(watch.of_step(*step, begin, begin + std::chrono::hours(1)).waited.count(), 0.02);
}

TEST(LoadWatch, ALoadBeforeTheStepBeganMadeNobodyWait) {
  LoadWatch watch(cpu_plan(1));
  StepInput input;
  input.load = [](auto...) {};
  const auto step = watch.watch(input);
  input.load(0, 1, nullptr, nullptr);
  const Clock::time_point begin = Clock::now();
  EXPECT_EQ(watch.of_step(*step, begin, begin + std::chrono::seconds(1)).waited.count(), 0);
}

TEST(LoadWatch, TellsWhatLoadsDid) {
  LoadWatch watch(cpu_plan(1));
  StepInput input;
  input.load = [](auto...) {
    {
      const LoadClock decoding(&LoadingTimes::decoding);
      std::this_thread::sleep_for(std::chrono::milliseconds(6));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  const auto step = watch.watch(input);
  const Clock::time_point begin = Clock::now();
  input.load(0, 1, nullptr, nullptr);
  input.sent(std::chrono::milliseconds(30));
  const LoaderUse use = watch.of_step(*step, begin, begin + std::chrono::milliseconds(100));
  EXPECT_GE(use.times.decoding, 0.006);
  EXPECT_GE(use.times.other, 0.002);
  EXPECT_DOUBLE_EQ(use.times.wire, 0.03);
  EXPECT_DOUBLE_EQ(use.share, use.times.seconds() / 0.1);
  EXPECT_EQ(watch.of_epoch().times.wire, 0.03);
  EXPECT_EQ(watch.of_epoch().times.seconds(), 0);
}

// Where workers only feed GPUs, a step cannot begin before samples have come to a GPU.
TEST(LoadWatch, AStepOnAGpuWaitsForTheWireToo) {
  Plan plan = cpu_plan(1);
  plan.nodes.front().groups.front().kind = DeviceKind::cuda;
  plan.loaders = 2;
  LoadWatch watch(plan);
  StepInput input;
  input.load = [](auto...) {};
  const auto step = watch.watch(input);
  const Clock::time_point begin = Clock::now();
  input.load(0, 1, nullptr, nullptr);
  const Clock::time_point loaded = Clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  input.sent(std::chrono::milliseconds(5));
  EXPECT_GE(watch.of_step(*step, begin, begin + std::chrono::seconds(1)).waited,
            loaded - begin + std::chrono::milliseconds(5));
}

TEST(LoadWatch, SaysSoWhenLoadingTakesMostOfTheTime) {
  const LoadWatch watch(cpu_plan(4));
  const LoadingTimes times{.reading = 1, .decoding = 3};
  EXPECT_EQ(watch.verdict({0.3, Seconds(1), Seconds(10), times}, "folder:x"), "");
  EXPECT_THAT(watch.verdict({0.75, Seconds(1.5), Seconds(10), times}, "folder:x"),
              AllOf(HasSubstr("the loader, not the compute, limits: 75% of 4"),
                    HasSubstr("waited 1.5 s for it, 15% of the time"),
                    HasSubstr("decoding takes 75% of loading: regatta data prepare folder:x")));
  EXPECT_THAT(watch.verdict({0.75, Seconds(1), Seconds(10), {.reading = 1}}, "shards:x"),
              HasSubstr("more --workers"));
}

}  // namespace
}  // namespace regatta
