// How long gradients take to come together, against numbers computed by hand.
#include "sim/exchange.h"

#include <gtest/gtest.h>

#include "sim/aside.h"
#include "sim/exchanger.h"
#include "tasks/exchange_rounds.h"

namespace regatta::sim {
namespace {

constexpr double bandwidth = 1e6, bytes = 4e6;  // a bucket takes four seconds

Platform uniform(int nodes, double latency = 0) {
  Platform platform;
  platform.name = "uniform";
  PlatformNode node;
  node.name = "n";
  node.count = nodes;
  node.groups = {{.name = "cpu", .costs = {.flops = 1e9}}};
  platform.nodes = {node};
  platform.network.link = {bandwidth, latency};
  return platform;
}

std::vector<Endpoint> all_nodes(const Wiring& wiring) {
  std::vector<Endpoint> ranks;
  for (int node = 0; node < wiring.nodes(); ++node) ranks.push_back({node, -1});
  return ranks;
}

// When the last rank has everything. Rank r is ready after ready[r] seconds.
double seconds_of(NodeUpdate update, const Platform& platform, bool each,
                  const std::vector<double>& ready = {}, int buckets = 1) {
  const std::string answer = run_aside([&] {
    const Wiring wiring(platform);
    World::Shape shape;
    for (const Wire& wire : wiring.wires()) shape.links.push_back(wire.bandwidth);
    const std::vector<Endpoint> ranks = all_nodes(wiring);
    const ExchangeRoutes routes(make_exchange(update, ranks, wiring), wiring, each, shape.routes);
    auto* world = new World(shape);  // never torn down: the process ends
    double end = 0;
    std::vector<std::unique_ptr<BucketExchange>> exchanges;
    for (int b = 0; b < buckets; ++b)
      exchanges.push_back(std::make_unique<BucketExchange>(*world, routes, wiring.nodes(), bytes,
                                                           [&](int) { end = world->now(); }));
    for (int rank = 0; rank < wiring.nodes(); ++rank)
      for (const auto& exchange : exchanges) {
        const double wait = ready.empty() ? 0 : ready[static_cast<std::size_t>(rank)];
        world->later(wait, [&exchange, rank] { exchange->ready(rank); });
      }
    world->run();
    ByteWriter writer;
    writer.put(std::vector<double>{end});
    return writer.take();
  });
  return ByteReader(answer).get<double>().front();
}

TEST(Exchange, ARingSendsTwiceTheBytesButForOneNth) {
  for (const int nodes : {2, 4, 8})
    EXPECT_NEAR(seconds_of(NodeUpdate::ring, uniform(nodes), true),
                2.0 * (nodes - 1) / nodes * bytes / bandwidth, 1e-4)
        << nodes;
  // Every round also waits for two links' latency.
  EXPECT_NEAR(seconds_of(NodeUpdate::ring, uniform(4, 0.005), true), 6 + 6 * 0.01, 1e-4);
}

TEST(Exchange, ARingWaitsForTheLastRank) {
  EXPECT_NEAR(seconds_of(NodeUpdate::ring, uniform(2), true, {0, 3}), 3 + 4, 1e-4);
}

TEST(Exchange, AServersLinkIsHot) {
  // Three buckets come in over one link, and three go out.
  EXPECT_NEAR(seconds_of(NodeUpdate::server_gpu, uniform(4), true), 3 * 4 + 3 * 4, 1e-4);
  EXPECT_NEAR(seconds_of(NodeUpdate::server_cpu, uniform(4), true), 3 * 4 + 3 * 4, 1e-4);
}

TEST(Exchange, ATreeIsClimbedAndDescended) {
  // 3 to 1 while 2 to 0; 1 to 0; 0 to 1 and 2 over one link; 1 to 3.
  EXPECT_NEAR(seconds_of(NodeUpdate::tree, uniform(4), true), 4 + 4 + 8 + 4, 1e-4);
}

// So many nodes at either end of a link.
Platform two_sites(int nodes, int others, double between, double latency = 0) {
  Platform platform = uniform(nodes, latency);
  platform.network.topology = Topology::wide_area;
  platform.network.switches = {{.name = "x"}, {.name = "y"}};
  platform.network.sites = {{"x", "y", {between, latency}}};
  platform.nodes[0].attached = "x";
  platform.nodes.push_back(platform.nodes[0]);
  platform.nodes[1].name = "m";
  platform.nodes[1].attached = "y";
  platform.nodes[1].count = others;
  return platform;
}

TEST(Exchange, AHierarchySumsAtHomeFirst) {
  const Platform platform = two_sites(2, 2, bandwidth / 10);
  // Half a bucket at home, two rounds of two quarters over the slow link, half a bucket at home.
  EXPECT_NEAR(seconds_of(NodeUpdate::hierarchical, platform, true), 2 + 2 * 20 + 2, 1e-3);
  // A ring over all four crosses it in every round, both ways at once: six rounds of a quarter.
  EXPECT_NEAR(seconds_of(NodeUpdate::ring, platform, true), 6 * 10, 1e-3);
}

TEST(Exchange, AHierarchyOfUnequalSitesHasAsManyPiecesAsTheSmallestHasMembers) {
  // Three rounds of a quarter in the larger site, where half a bucket is then owned by one of two;
  // two rounds of two quarters over the link; and back.
  EXPECT_NEAR(seconds_of(NodeUpdate::hierarchical, two_sites(4, 2, bandwidth / 10), true),
              2 * (3 + 1) + 2 * 20, 0.2);
}

TEST(Exchange, AHierarchyNeedsFewerRoundsThanARing) {
  // With hardly any bytes there is only latency: of two links at home and three between the sites.
  const double latency = 1e4;
  const Platform platform = two_sites(8, 8, bandwidth, latency);
  EXPECT_NEAR(seconds_of(NodeUpdate::hierarchical, platform, true) / latency, 2 * 7 * 2 + 2 * 3,
              0.1);
  EXPECT_NEAR(seconds_of(NodeUpdate::ring, platform, true) / latency, 30 * 3, 0.1);
}

TEST(Exchange, AHierarchySendsWhatTheRanksOfARunSend) {
  constexpr std::size_t elements = 12000;
  for (const auto& [nodes, others] : {std::pair{3, 3}, {4, 2}, {5, 3}, {6, 1}}) {
    const Wiring wiring(two_sites(nodes, others, bandwidth));
    const Exchange exchange = make_exchange(NodeUpdate::hierarchical, all_nodes(wiring), wiring);
    std::vector<double> simulated(static_cast<std::size_t>(wiring.nodes()), 0);
    for (const Round& round : exchange.rounds)
      for (const Message& each : round.messages)
        simulated[static_cast<std::size_t>(each.from)] += round.times * each.share;
    RankPlace place;
    place.ranks = wiring.nodes();
    place.update = NodeUpdate::hierarchical;
    for (int rank = 0; rank < place.ranks; ++rank) place.sites.push_back(rank < nodes ? 0 : 1);
    for (place.rank = 0; place.rank < place.ranks; ++place.rank) {
      std::size_t sent = 0;
      for (const ExchangeRound& round : exchange_rounds(place, elements))
        for (const Transfer& each : round)
          if (each.kind == Transfer::Kind::send) sent += each.count;
      EXPECT_NEAR(static_cast<double>(sent) / elements,
                  simulated[static_cast<std::size_t>(place.rank)], 1e-3)
          << nodes << " and " << others << " nodes, rank " << place.rank;
    }
  }
}

TEST(Exchange, AggregatedRoundsShareLinksLikeTheMessagesOfAHierarchy) {
  const Platform platform = two_sites(12, 8, 4 * bandwidth, 1e-4);
  const double each = seconds_of(NodeUpdate::hierarchical, platform, true);
  EXPECT_NEAR(seconds_of(NodeUpdate::hierarchical, platform, false) / each, 1, 0.05);
}

TEST(Exchange, AggregatedRoundsEqualTheMessagesOfAUniformRing) {
  for (const int nodes : {2, 3, 8, 16}) {
    const Platform platform = uniform(nodes, 1e-4);
    const double each = seconds_of(NodeUpdate::ring, platform, true);
    EXPECT_NEAR(seconds_of(NodeUpdate::ring, platform, false) / each, 1, 1e-5) << nodes;
  }
  const Platform many = uniform(64, 1e-4);
  const double each = seconds_of(NodeUpdate::ring, many, true);
  EXPECT_NEAR(seconds_of(NodeUpdate::ring, many, false) / each, 1, 0.03);
}

TEST(Exchange, AggregatedRoundsShareLinksLikeMessages) {
  const Platform platform = uniform(8, 1e-4);
  const double each = seconds_of(NodeUpdate::ring, platform, true, {}, 3);
  EXPECT_NEAR(seconds_of(NodeUpdate::ring, platform, false, {}, 3) / each, 1, 0.01);
  const double server = seconds_of(NodeUpdate::server_cpu, platform, true);
  EXPECT_NEAR(seconds_of(NodeUpdate::server_cpu, platform, false) / server, 1, 0.01);
}

}  // namespace
}  // namespace regatta::sim
