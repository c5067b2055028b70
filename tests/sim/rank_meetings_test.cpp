// Batch norm over several ranks: with the whole batch's statistics their chunks meet, and the links
// are paid for it; with groups' they do not.
#include <gtest/gtest.h>

#include "ops/builder.h"
#include "plan/segments.h"
#include "sim/fleet_plan.h"
#include "support/grouped.h"

namespace regatta::sim {
namespace {

constexpr double latency = 1;  // seconds of each link: all else takes next to nothing

Platform far_apart(int nodes) {
  Platform platform;
  platform.name = "far apart";
  PlatformNode node;
  node.name = "n";
  node.count = nodes;
  node.groups = {{.name = "cpu",
                  .count = 1,
                  .memory = 1 << 30,
                  .watts = {10, 30},
                  .costs = {.flops = 1e15, .memory_bandwidth = 1e15}}};
  platform.nodes = {node};
  platform.network.link = {1e12, latency};
  return platform;
}

Graph one_norm() {
  NetBuilder net("one norm", {1, 8, 8});
  const NodeId x =
      net.batch_norm("norm", net.conv("conv", net.input(), {.channels = 4, .kernel = 3}));
  return fuse(std::move(net).finish(net.dense("dense", x, 3)));
}

Simulated on_nodes(const Graph& graph, int nodes, std::int64_t share,
                   Precision wire = Precision::fp32, double bandwidth = 1e12) {
  Recipe recipe;
  recipe.wire_precision = wire;
  recipe.batch = nodes * share;
  Plan plan;
  plan.segments = segments_named(graph, "step");
  plan.steps_in_flight = 1;
  for (int n = 0; n < nodes; ++n) {
    DeviceGroup group;
    group.chunks = {share};
    plan.nodes.push_back({nodes == 1 ? "n" : "n-" + std::to_string(n), {group}});
  }
  Platform platform = far_apart(nodes);
  platform.network.link.bandwidth = bandwidth;
  PreparedFleet fleet(graph, recipe, platform, {});
  fleet.follow(plan);
  return simulate(fleet.fleet(), {.steps = 2});
}

// A message passes two links. A meeting of two is one message there and one back, a ring of two
// likewise; a step has a meeting each way and one bucket of gradients.
TEST(RankMeetings, TakeTheirMessagesTime) {
  const Graph whole = one_norm(), apart = grouped(one_norm(), 4);
  const double message = 2 * latency;
  EXPECT_NEAR(on_nodes(apart, 2, 4).step_s[0], 2 * message, 0.01);
  EXPECT_NEAR(on_nodes(whole, 2, 4).step_s[0], (2 + 2 * 2) * message, 0.01);
  EXPECT_LT(on_nodes(whole, 1, 8).step_s[0], 0.01) << "one rank is alone";
}

// Up a binary tree and down again: with four ranks two messages each way wait for each other.
TEST(RankMeetings, OfManyRanksGoThroughATree) {
  const double message = 2 * latency, ring = 2 * 3 * message;
  EXPECT_NEAR(on_nodes(one_norm(), 4, 2).step_s[0], ring + 2 * 4 * message, 0.01);
}

// Two rows of doubles for 16 channels, up and down, each way through the network.
TEST(RankMeetings, MoveTheSumsOfTheirChannels) {
  const double more = on_nodes(one_norm(), 2, 4).exchanged_bytes -
                      on_nodes(grouped(one_norm(), 4), 2, 4).exchanged_bytes;
  EXPECT_DOUBLE_EQ(more, 2 * 2 * (2 * 16 * 8));
}

// Over links so slow that a step is its bytes' way; messages of batch norm stay as they are.
TEST(RankMeetings, GradientsInBf16TakeHalfTheBytesAndHalfTheTime) {
  constexpr double slow = 100;  // bytes a second
  const Graph graph = grouped(one_norm(), 4);
  const Simulated full = on_nodes(graph, 2, 4, Precision::fp32, slow);
  const Simulated half = on_nodes(graph, 2, 4, Precision::bf16, slow);
  EXPECT_DOUBLE_EQ(2 * half.exchanged_bytes, full.exchanged_bytes);
  const double latencies = 2 * 2 * latency;
  EXPECT_NEAR(2 * (half.step_s[0] - latencies), full.step_s[0] - latencies, 0.01 * full.step_s[0]);
  const auto norms = [](Precision wire) {
    return on_nodes(one_norm(), 2, 4, wire).exchanged_bytes -
           on_nodes(grouped(one_norm(), 4), 2, 4, wire).exchanged_bytes;
  };
  EXPECT_DOUBLE_EQ(norms(Precision::bf16), norms(Precision::fp32));
}

TEST(RankMeetings, JoulesAreThoseOfTasksOfIdlingAndOfUnusedNodes) {
  const Graph graph = one_norm();
  Recipe recipe;
  recipe.batch = 4;
  Plan plan;
  plan.segments = segments_named(graph, "step");
  plan.nodes = {{"n-0", {{.chunks = {4}}}}};
  Platform platform = far_apart(3);
  platform.nodes[0].groups[0].costs.flops = 1e7;  // a step takes milliseconds
  const auto simulated = [&] {
    PreparedFleet fleet(graph, recipe, platform, {});
    fleet.follow(plan);
    return simulate(fleet.fleet(), {.steps = 4});
  };
  const Simulated idle = simulated();
  double sum = 0;
  for (const GroupEnergy& each : idle.energy) sum += each.idle_j + each.tasks_j;
  EXPECT_NEAR(sum, idle.energy_j[0], 1e-9 + 1e-6 * sum);
  ASSERT_EQ(idle.energy.size(), 2u);
  const double step = idle.step_s[0];
  EXPECT_NEAR(idle.energy[0].idle_j, 10 * step, 1e-9);
  EXPECT_NEAR(idle.energy[0].tasks_j, 20 * idle.groups[0].busy_s, 0.2 * idle.energy[0].tasks_j);
  EXPECT_EQ(idle.energy[1].node, "unused nodes");
  EXPECT_NEAR(idle.energy[1].idle_j, 2 * 10 * step, 1e-9) << "as much as their devices idling";
  platform.nodes[0].unused_watts = 0;
  const Simulated off = simulated();
  EXPECT_EQ(off.energy[1].idle_j, 0) << "switched off";
  EXPECT_NEAR(idle.energy_j[0] - off.energy_j[0], 2 * 10 * step, 1e-9);
}

}  // namespace
}  // namespace regatta::sim
