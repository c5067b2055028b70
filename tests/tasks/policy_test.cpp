#include "tasks/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta {
namespace {

using testing::ElementsAre;

TEST(Policy, EarlierListsGoFirstSoThatTheNextStepOnlyFillsGaps) {
  const std::vector<ReadyTask> ready{{.list = 2, .rank = 9}, {.list = 1, .rank = 1}};
  EXPECT_EQ(pick(ready, 0), 1u);
}

TEST(Policy, TheLongestWayAheadGoesFirst) {
  const std::vector<ReadyTask> ready{{.rank = 1, .order = 0}, {.rank = 3, .order = 1}};
  EXPECT_EQ(pick(ready, 0), 1u);
}

TEST(Policy, AmongEqualsTheListsOrderDecides) {
  const std::vector<ReadyTask> ready{{.rank = 1, .order = 7}, {.rank = 1, .order = 5}};
  EXPECT_EQ(pick(ready, 0), 1u);
}

TEST(Policy, DataAtHandIsWorthASmallLead) {
  const std::vector<ReadyTask> ready{{.rank = 1.00, .order = 0, .home = 1},
                                     {.rank = 0.98, .order = 1, .home = 0}};
  EXPECT_EQ(pick(ready, 0), 1u);
  EXPECT_EQ(pick(ready, 1), 0u);
  EXPECT_EQ(pick(ready, 2), 0u);
}

TEST(Policy, DataAtHandIsNotWorthALargeLead) {
  const std::vector<ReadyTask> ready{{.rank = 1.0, .order = 0, .home = 1},
                                     {.rank = 0.5, .order = 1, .home = 0}};
  EXPECT_EQ(pick(ready, 0), 0u);
}

// A fast worker that needs 20 J for a second of work, and one that takes twice as long for 6 J.
Pace uneven_pair() {
  Pace pace;
  pace.workers = {{.slow = 1, .watts = 20}, {.slow = 2, .watts = 3}};
  pace.seconds = {1, 1, 1};
  pace.ranks = {1, 2, 1};
  return pace;
}

TEST(PolicyWithAPace, AFastWorkerLeavesWhatACheaperOneCanDoInTime) {
  EXPECT_TRUE(leaves(uneven_pair(), 0, 0, 3, 6)) << "three tasks of two seconds";
  EXPECT_FALSE(leaves(uneven_pair(), 0, 0, 3, 5.9)) << "two whole tasks, and not the third";
}

TEST(PolicyWithAPace, WhatFollowsATaskMustBeInTimeToo) {
  EXPECT_TRUE(leaves(uneven_pair(), 1, 0, 1, 4));
  EXPECT_FALSE(leaves(uneven_pair(), 1, 0, 1, 3.9));
}

TEST(PolicyWithAPace, TheCheapestWorkerRestsNever) {
  EXPECT_FALSE(leaves(uneven_pair(), 0, 1, 1, 1e9));
  EXPECT_FALSE(leaves(uneven_pair(), 0, 1, 0, 1e9));
}

TEST(PolicyWithAPace, OfEqualWorkersTheLastOnesRest) {
  Pace pace = uneven_pair();
  pace.workers = {{.slow = 1, .watts = 5}, {.slow = 1, .watts = 5}, {.slow = 1, .watts = 5}};
  const auto resting = [&](double time) {
    int workers = 0;
    for (int w = 0; w < 3; ++w) workers += leaves(pace, 0, w, 3, time) ? 1 : 0;
    return workers;
  };
  EXPECT_EQ(resting(1), 0);
  EXPECT_EQ(resting(2), 1) << "two of them have time for two tasks each";
  EXPECT_EQ(resting(3), 2);
}

TEST(Policy, ARankIsTheLongestChainFromATasksStartToTheEnd) {
  // 0 -> 1 -> 3, 0 -> 2 -> 3
  const std::vector<Dependencies::Edge> edges{{1, 0}, {2, 0}, {3, 1}, {3, 2}};
  EXPECT_THAT(ranks({1, 5, 2, 10}, edges), ElementsAre(16, 15, 12, 10));
}

}  // namespace
}  // namespace regatta
