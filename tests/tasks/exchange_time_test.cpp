// Predicted times of exchanges, against numbers computed by hand.
#include "tasks/exchange_time.h"

#include <gtest/gtest.h>

namespace regatta {
namespace {

constexpr double bandwidth = 1e6, bytes = 4e6;  // a bucket takes four seconds on a link

RankLinks uniform(std::size_t ranks, double latency = 0) {
  return RankLinks(ranks, std::vector<LinkSpeed>(ranks, {bandwidth, latency}));
}
double seconds(NodeUpdate update, std::size_t ranks, double latency = 0) {
  return exchange_seconds(update, std::vector<int>(ranks, 0), uniform(ranks, latency), bytes);
}

TEST(ExchangeTime, ARingSendsTwiceTheBytesButForOneNth) {
  for (const std::size_t n : {2u, 4u, 8u})
    EXPECT_NEAR(seconds(NodeUpdate::ring, n),
                2.0 * static_cast<double>(n - 1) / static_cast<double>(n) * 4, 1e-3);
  EXPECT_NEAR(seconds(NodeUpdate::ring, 4, 0.01), 6 + 6 * 0.01, 1e-3);
}

TEST(ExchangeBound, IsTheRingsTimeAmongAlikeAndNoWayBeatsIt) {
  for (const std::size_t n : {2u, 3u, 4u}) {
    const double bound = exchange_bound(std::vector<int>(n, 0), uniform(n), bytes);
    EXPECT_NEAR(bound, seconds(NodeUpdate::ring, n), 1e-3);
    for (const NodeUpdate way : {NodeUpdate::tree, NodeUpdate::server_cpu, NodeUpdate::replicated,
                                 NodeUpdate::hierarchical, NodeUpdate::chain})
      EXPECT_GE(seconds(way, n), bound - 1e-3) << node_update_name(way);
  }
}

TEST(ExchangeBound, TheSlowestLinkMustCarryAllOfItOnce) {
  RankLinks links = uniform(4);
  for (std::size_t other = 0; other < 3; ++other)
    links[3][other].bandwidth = links[other][3].bandwidth = bandwidth / 10;
  EXPECT_NEAR(exchange_bound({0, 0, 0, 0}, links, bytes), 40, 1e-6);
  // Two sites whose uplink has a fifth of a link's bandwidth.
  links = uniform(4);
  for (const std::size_t a : {0u, 1u})
    for (const std::size_t b : {2u, 3u})
      links[a][b].bandwidth = links[b][a].bandwidth = bandwidth / 5;
  EXPECT_NEAR(exchange_bound({0, 0, 1, 1}, links, bytes), 20, 1e-6);
}

TEST(ExchangeTime, AServersLinkCarriesEverythingBothWays) {
  EXPECT_NEAR(seconds(NodeUpdate::server_cpu, 4), 3 * 4 + 3 * 4, 1e-3);
}

TEST(ExchangeTime, ATreeSendsAllOfItUpAndDown) {
  // Rank 3 to 1 (4 s), 1 and 2 to 0 (8 s, of which 2's first 4 s are over by then), and back.
  const double four = seconds(NodeUpdate::tree, 4);
  EXPECT_GE(four, 4 + 4 + 8);
  EXPECT_LE(four, 4 + 8 + 8 + 4 + 1e-3);
}

TEST(ExchangeTime, ReplicatedSavesALatencyAmongTwo) {
  EXPECT_NEAR(seconds(NodeUpdate::replicated, 2, 0.5), 4 + 0.5, 1e-3);
  EXPECT_NEAR(seconds(NodeUpdate::ring, 2, 0.5), 4 + 2 * 0.5, 1e-3);
}

TEST(ExchangeTime, TheFastestWayDependsOnTheLinks) {
  const std::vector<int> alike(4, 0);
  EXPECT_EQ(fastest_update(alike, uniform(4, 1e-5), {4e6}), NodeUpdate::ring);
  // A hundred bytes are all latency: one round is best.
  EXPECT_EQ(fastest_update(alike, uniform(4, 1e-2), {100}), NodeUpdate::replicated);
}

TEST(ExchangeTime, MembersOfASiteShareItsUplink) {
  RankLinks links = uniform(4);
  for (const std::size_t a : {0u, 1u})
    for (const std::size_t b : {2u, 3u})
      links[a][b].bandwidth = links[b][a].bandwidth = bandwidth / 10;
  // Half a bucket at home, two rounds of two quarters over the slow link, half a bucket at home.
  EXPECT_NEAR(exchange_seconds(NodeUpdate::hierarchical, {0, 0, 1, 1}, links, bytes),
              2 + 2 * 20 + 2, 1e-3);
}

TEST(ExchangeTime, SlowLinksBetweenSitesAreFoundAndCrossedOnce) {
  RankLinks links = uniform(6, 1e-4);
  for (std::size_t a = 0; a < 6; ++a)
    for (std::size_t b = 0; b < 6; ++b)
      if ((a < 3) != (b < 3)) links[a][b].bandwidth = bandwidth / 50;
  const std::vector<int> sites = sites_of({0, 1, 2, 3, 4, 5}, links);
  EXPECT_EQ(sites, (std::vector<int>{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(sites_of({0, 0, 1, 1, 1, 2}, links), (std::vector<int>{0, 0, 1, 1, 1, 2}));
  EXPECT_LT(exchange_seconds(NodeUpdate::hierarchical, sites, links, bytes),
            exchange_seconds(NodeUpdate::replicated, sites, links, bytes));
}

}  // namespace
}  // namespace regatta
