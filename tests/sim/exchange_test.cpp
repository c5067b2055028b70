// How long gradients take to come together, against numbers computed by hand.
#include "sim/exchange.h"

#include <gtest/gtest.h>

#include "sim/aside.h"
#include "sim/exchanger.h"

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

TEST(Exchange, AHierarchySumsAtHomeFirst) {
  Platform platform = uniform(2);
  platform.network.topology = Topology::wide_area;
  platform.network.switches = {{.name = "x"}, {.name = "y"}};
  platform.network.sites = {{"x", "y", {bandwidth / 10, 0}}};
  platform.nodes[0].attached = "x";
  platform.nodes.push_back(platform.nodes[0]);
  platform.nodes[1].name = "m";
  platform.nodes[1].attached = "y";
  // Home, two rounds of half a bucket over the slow link, home again.
  EXPECT_NEAR(seconds_of(NodeUpdate::hierarchical, platform, true), 4 + 2 * 20 + 4, 1e-3);
  // A ring over all four crosses it in every round, both ways at once: six rounds of a quarter.
  EXPECT_NEAR(seconds_of(NodeUpdate::ring, platform, true), 6 * 10, 1e-3);
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
