#include "train/rank_memory.h"

#include <gtest/gtest.h>

namespace regatta {
namespace {

constexpr const char* machine = "/proc/meminfo";
constexpr const char* group = "/sys/fs/cgroup/job";

TEST(RankMemory, RanksOfOneMachineShareWhatIsLeftByWhatTheyNeed) {
  const std::vector<RankMemory> all{
      {"a", 300, 0, {machine}}, {"a", 100, 0, {machine}}, {"b", 5000, 0, {machine}}};
  const std::vector<MemoryLimit> limits{{"the machine", 1000, 800, machine}};
  EXPECT_EQ(limits_of_rank(limits, all, 0).front().left, 600);
  EXPECT_EQ(limits_of_rank(limits, all, 1).front().left, 200);
  EXPECT_EQ(limits_of_rank(limits, all, 2).front().left, 800);
  EXPECT_EQ(limits_of_rank(limits, all, 0).front().name,
            "this rank's part of the machine, which 2 ranks share,");
  EXPECT_EQ(limits_of_rank(limits, all, 2).front().name, "the machine");
}

// Each would fit by itself.
TEST(RankMemory, EitherAllRanksOfAMachineFitIntoTheirPartsOrNone) {
  const std::vector<MemoryLimit> limits{{"the machine", 1000, 800, machine}};
  for (const std::int64_t needed : {400, 401}) {
    const std::vector<RankMemory> all{{"a", needed, 0, {machine}}, {"a", needed, 0, {machine}}};
    for (const std::size_t rank : {0u, 1u})
      EXPECT_EQ(needed <= limits_of_rank(limits, all, rank).front().left, needed == 400);
  }
}

TEST(RankMemory, AControlGroupIsSharedByTheRanksInItAndUlimitByNone) {
  const std::vector<RankMemory> all{
      {"a", 100, 0, {machine, group}}, {"a", 100, 0, {machine, group}}, {"a", 200, 0, {machine}}};
  const std::vector<MemoryLimit> limits = limits_of_rank(
      {{"the machine", 1000, 800, machine}, {"a group", 900, 600, group}, {"ulimit -v", 700, 500}},
      all, 0);
  EXPECT_EQ(limits[0].left, 200);
  EXPECT_EQ(limits[1].left, 300);
  EXPECT_EQ(limits[2].left, 500);
}

TEST(RankMemory, WhatOtherRanksGiveBackCounts) {
  const std::vector<RankMemory> all{{"a", 100, 50, {machine}}, {"a", 100, 30, {machine}}};
  const std::vector<MemoryLimit> limits =
      limits_of_rank({{"the machine", 1000, 120, machine}, {"ulimit -v", 700, 20}}, all, 0);
  EXPECT_EQ(limits[0].left, 100);
  EXPECT_EQ(limits[1].left, 70);
}

}  // namespace
}  // namespace regatta
