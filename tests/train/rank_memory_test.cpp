#include "train/rank_memory.h"

#include <gtest/gtest.h>

namespace regatta {
namespace {

constexpr const char* machine = "a kernel";
constexpr const char* other = "another kernel";
constexpr const char* group = "a group";

TEST(RankMemory, RanksOfOneMachineShareWhatIsLeftByWhatTheyNeed) {
  const std::vector<RankMemory> all{{300, 0, {machine}}, {100, 0, {machine}}, {5000, 0, {other}}};
  const std::vector<MemoryLimit> limits{{"the machine", 1000, 800, machine}};
  EXPECT_EQ(limits_of_rank(limits, all, 0).front().left, 600);
  EXPECT_EQ(limits_of_rank(limits, all, 1).front().left, 200);
  const MemoryLimit alone = limits_of_rank({{"the machine", 1000, 800, other}}, all, 2).front();
  EXPECT_EQ(alone.left, 800);
  EXPECT_EQ(limits_of_rank(limits, all, 0).front().name,
            "this rank's part of the machine, which 2 ranks share,");
  EXPECT_EQ(alone.name, "the machine");
}

// Each would fit by itself.
TEST(RankMemory, EitherAllRanksOfAMachineFitIntoTheirPartsOrNone) {
  const std::vector<MemoryLimit> limits{{"the machine", 1000, 800, machine}};
  for (const std::int64_t needed : {400, 401}) {
    const std::vector<RankMemory> all{{needed, 0, {machine}}, {needed, 0, {machine}}};
    for (const std::size_t rank : {0u, 1u})
      EXPECT_EQ(needed <= limits_of_rank(limits, all, rank).front().left, needed == 400);
  }
}

TEST(RankMemory, AControlGroupIsSharedByTheRanksInItAndUlimitByNone) {
  const std::vector<RankMemory> all{
      {100, 0, {machine, group}}, {100, 0, {machine, group}}, {200, 0, {machine}}};
  const std::vector<MemoryLimit> limits = limits_of_rank(
      {{"the machine", 1000, 800, machine}, {"a group", 900, 600, group}, {"ulimit -v", 700, 500}},
      all, 0);
  EXPECT_EQ(limits[0].left, 200);
  EXPECT_EQ(limits[1].left, 300);
  EXPECT_EQ(limits[2].left, 500);
}

TEST(RankMemory, WhatOtherRanksGiveBackCounts) {
  const std::vector<RankMemory> all{{100, 50, {machine}}, {100, 30, {machine}}};
  const std::vector<MemoryLimit> limits =
      limits_of_rank({{"the machine", 1000, 120, machine}, {"ulimit -v", 700, 20}}, all, 0);
  EXPECT_EQ(limits[0].left, 100);
  EXPECT_EQ(limits[1].left, 70);
}

}  // namespace
}  // namespace regatta
