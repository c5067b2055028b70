// The platform of a run's ranks: its links are those that the ranks measured.
#include "app/rank_platform.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/files.h"
#include "platform/wiring.h"
#include "profile/store.h"
#include "support/temporary_folder.h"

namespace regatta::app {
namespace {

namespace fs = std::filesystem;

Plan plan_for(std::size_t ranks) {
  Plan plan;
  for (std::size_t r = 0; r < ranks; ++r)
    plan.nodes.push_back({"r" + std::to_string(r), {{.name = "cpu", .workers = 1, .chunks = {4}}}});
  return plan;
}

struct Way {
  double bandwidth = std::numeric_limits<double>::infinity(), latency = 0;
};
Way way(const Platform& platform, const std::string& from, const std::string& to) {
  const Wiring wiring(platform);
  const auto node = [&](const std::string& name) {
    int n = 0;
    while (wiring.node_name(n) != name) ++n;
    return Endpoint{n, -1};
  };
  Way found;
  for (const int wire : wiring.route(node(from), node(to))) {
    const Wire& each = wiring.wires()[static_cast<std::size_t>(wire)];
    found.bandwidth = std::min(found.bandwidth, each.bandwidth);
    found.latency += each.latency;
  }
  return found;
}

void expect_links(const RankNetwork& network) {
  const Platform platform = platform_of_ranks(plan_for(network.links.size()), network);
  for (std::size_t a = 0; a < network.links.size(); ++a)
    for (std::size_t b = 0; b < network.links.size(); ++b) {
      if (a == b) continue;
      const Way found = way(platform, "r" + std::to_string(a), "r" + std::to_string(b));
      EXPECT_NEAR(found.bandwidth / network.links[a][b].bandwidth, 1, 1e-9) << a << " " << b;
      EXPECT_NEAR(found.latency, network.links[a][b].latency, 1e-12) << a << " " << b;
    }
}

TEST(RankPlatform, TwoRanksHaveTheirLink) {
  expect_links({{{{}, {1e8, 4e-5}}, {{1e8, 4e-5}, {}}}, {0, 1}, {1, 1}});
}

TEST(RankPlatform, ARankWithASlowAndFarLinkHasItToAll) {
  RankLinks links(3, std::vector<LinkSpeed>(3, {1e9, 2e-5}));
  for (const std::size_t other : {0u, 1u}) links[2][other] = links[other][2] = {6e8, 3e-4};
  expect_links({links, {0, 1, 2}, {1, 1, 1}});
}

TEST(RankPlatform, SitesShareTheirUplink) {
  RankLinks links(4, std::vector<LinkSpeed>(4, {1e9, 2e-5}));
  for (const std::size_t a : {0u, 1u})
    for (const std::size_t b : {2u, 3u}) links[a][b] = links[b][a] = {5e7, 2e-3};
  const RankNetwork network{links, {0, 1, 2, 3}, {1, 1, 1, 1}};
  expect_links(network);
  const Wiring wiring(platform_of_ranks(plan_for(4), network));
  EXPECT_EQ(wiring.neighbourhood(0), wiring.neighbourhood(1));
  EXPECT_NE(wiring.neighbourhood(0), wiring.neighbourhood(2));
}

TEST(RankPlatform, RanksOfOneMachineAreNearEachOther) {
  RankLinks links(3, std::vector<LinkSpeed>(3, {1e8, 1e-4}));
  links[0][1] = links[1][0] = {5e9, 1e-6};
  expect_links({links, {0, 0, 1}, {1, 1, 2}});
}

// A profile whose only task takes so many seconds.
void write_profile(const fs::path& file, double seconds) {
  Profile profile;
  profile.learn(std::vector<Observation>(8, {"some task", 1, 1, seconds}));
  fs::create_directories(file.parent_path());
  write_file(file, to_json(profile, {}).dump());
}

TEST(RankPlatform, EveryRankHasTheProfileOfItsMachine) {
  const TemporaryFolder run;
  RankNetwork network{{{{}, {1e8, 4e-5}}, {{1e8, 4e-5}, {}}}, {0, 1}, {1, 1}, {}};
  network.profiles = {"profiles/rank-0.json", "profiles/rank-1.json"};
  write_profile(run.path() / network.profiles[0], 1e-3);
  write_profile(run.path() / network.profiles[1], 5e-3);
  EXPECT_TRUE(network.all_have_profiles());
  const Platform platform = platform_of_ranks(plan_for(2), network);
  const sim::Profiles profiles = network.profiles_in(run.path(), nullptr);
  const auto seconds_of = [&](std::size_t rank) {
    const std::string& name = platform.nodes[rank].groups.front().costs.profile;
    return profiles.at(name)->find("some task")->at(1, 1).seconds;
  };
  EXPECT_DOUBLE_EQ(seconds_of(0), 1e-3);
  EXPECT_DOUBLE_EQ(seconds_of(1), 5e-3);
}

TEST(RankPlatform, ARankThatHadMeasuredNothingHasTheCostsOfThisMachine) {
  const TemporaryFolder run;
  RankNetwork network{{{{}, {1e8, 4e-5}}, {{1e8, 4e-5}, {}}}, {0, 1}, {1, 1}, {}};
  network.profiles = {"", "profiles/rank-1.json"};
  write_profile(run.path() / network.profiles[1], 5e-3);
  EXPECT_FALSE(network.all_have_profiles());
  const auto other = std::make_shared<const Profile>();
  const Platform platform = platform_of_ranks(plan_for(2), network);
  EXPECT_EQ(
      network.profiles_in(run.path(), other).at(platform.nodes[0].groups.front().costs.profile),
      other);
}

TEST(RankPlatform, ARecordWithoutLinksIsRefused) {
  EXPECT_THROW(network_in(trace::Record{}), InputError);
}

}  // namespace
}  // namespace regatta::app
