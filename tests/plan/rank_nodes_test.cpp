// Which rank is which node of a plan.
#include "plan/rank_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "support/error_text.h"

namespace regatta {
namespace {

using Hosts = std::vector<std::string>;
using Numbers = std::vector<std::size_t>;
using testing::HasSubstr;
using testing::IsEmpty;

// A node of one group for each name, the n-th with a chunk of n + 1 samples.
Plan plan_of(const Hosts& names) {
  Plan plan;
  for (const std::string& name : names) {
    DeviceGroup group;
    group.chunks = {std::ssize(plan.nodes) + 1};
    plan.nodes.push_back({name, {group}});
  }
  return plan;
}

TEST(RankNodes, GoByHostNameInWhateverOrderTheRanksWereStarted) {
  const RankNodes ranks = nodes_of_ranks(plan_of({"a", "b", "c"}), {"c.example.org", "a", "b"});
  EXPECT_TRUE(ranks.by_host);
  EXPECT_EQ(ranks.nodes, (Numbers{2, 0, 1}));
}

TEST(RankNodes, OfOneNameGoToTheRanksOfThatHostInTheirOrder) {
  const RankNodes ranks = nodes_of_ranks(plan_of({"box", "box", "old"}), {"old", "box", "box"});
  EXPECT_EQ(ranks.nodes, (Numbers{2, 0, 1}));
}

TEST(RankNodes, GoByOrderWhereNoNameIsAHosts) {
  const RankNodes ranks = nodes_of_ranks(plan_of({"fast", "slow"}), {"here", "here"});
  EXPECT_FALSE(ranks.by_host);
  EXPECT_EQ(ranks.nodes, (Numbers{0, 1}));
}

TEST(RankNodes, AnotherNumberOfRanksIsToldHowManyToStart) {
  EXPECT_EQ(error_text([] {
              nodes_of_ranks(plan_of({"a", "b"}), {"a", "b", "b"});
            }),
            "the plan is for 2 nodes, and 3 ranks were started: start 2, such as by mpirun -n 2");
  EXPECT_EQ(error_text([] {
              nodes_of_ranks(plan_of({"a"}), {"a", "b"});
            }),
            "the plan is for 1 node, and 2 ranks were started: start it without a launcher");
}

TEST(RankNodes, AHostWithoutANodeIsNamed) {
  EXPECT_EQ(error_text([] {
              nodes_of_ranks(plan_of({"a", "b"}), {"a", "d"});
            }),
            "the plan has 1 node named 'b', but 0 ranks run on a host of that name, and one on "
            "'d'");
}

TEST(RankNodes, StandInTheOrderOfRanks) {
  const Plan plan = plan_of({"a", "b"});
  const Plan ordered = in_rank_order(plan, nodes_of_ranks(plan, {"b", "a"}));
  EXPECT_EQ(ordered.nodes[0].name, "b");
  EXPECT_EQ(share_of(ordered.nodes[0]), 2);
  EXPECT_EQ(ordered.nodes[1].name, "a");
}

TEST(RankNodes, ADeterministicPlanKeepsTheOrderOfItsChunks) {
  Plan plan = plan_of({"a", "b"});
  plan.deterministic = true;
  const RankNodes crossed = nodes_of_ranks(plan, {"b", "a"});
  EXPECT_THAT(error_text([&] { in_rank_order(plan, crossed); }), HasSubstr("in that order"));
  plan.nodes[1].groups[0].chunks = plan.nodes[0].groups[0].chunks;
  EXPECT_EQ(in_rank_order(plan, crossed).nodes[0].name, "b");
}

TEST(RankNodes, WhatOnlyTheSimulatorKnowsIsNamed) {
  Plan plan = plan_of({"a", "b"});
  EXPECT_THAT(rank_hindrances(plan), IsEmpty());
  plan.update = NodeUpdate::server_gpu;
  plan.placement = Placement::fixed;
  plan.nodes[1].groups.push_back({});
  EXPECT_EQ(rank_hindrances(plan).size(), 3u);
}

}  // namespace
}  // namespace regatta
