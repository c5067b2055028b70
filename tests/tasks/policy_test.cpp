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

TEST(Policy, ARankIsTheLongestChainFromATasksStartToTheEnd) {
  // 0 -> 1 -> 3, 0 -> 2 -> 3
  const std::vector<Dependencies::Edge> edges{{1, 0}, {2, 0}, {3, 1}, {3, 2}};
  EXPECT_THAT(ranks({1, 5, 2, 10}, edges), ElementsAre(16, 15, 12, 10));
}

}  // namespace
}  // namespace regatta
