// Small platforms whose best plan can be told by hand.
#include <gtest/gtest.h>

#include "optimize/bound.h"
#include "optimize/search.h"

namespace regatta::optimize {
namespace {

struct Machine {
  std::string name;
  double sample_s = 1, idle = 0, busy = 0;  // watts; busy: beyond idle
  double link = 1e12;                       // bytes a second
};

NodeKind node(const Machine& machine, double unused_watts) {
  NodeKind made;
  made.name = machine.name;
  made.idle_watts = machine.idle;
  made.unused_watts = unused_watts;
  made.link_bandwidth = machine.link;
  Device device;
  device.group = "cpu";
  DeviceState full;
  full.seconds = full.least.seconds = {{0, machine.sample_s}};
  full.least.joules = {{0, machine.sample_s * machine.busy}};
  full.idle_watts = machine.idle;
  full.busy_watts = machine.busy;
  device.states = {full};
  made.devices = {device};
  return made;
}

// Nodes that stay on when they are not used.
Problem always_on(std::int64_t batch, const std::vector<Machine>& machines) {
  Problem problem;
  problem.batch = problem.images = batch;
  for (const Machine& each : machines) problem.nodes.push_back(node(each, each.idle));
  return problem;
}

Problem switched_off(std::int64_t batch, const std::vector<Machine>& machines) {
  Problem problem = always_on(batch, machines);
  for (NodeKind& each : problem.nodes) each.unused_watts = 0;
  return problem;
}

Choice best(const Problem& problem, Objective objective, const Limits& limits = {}) {
  return search(problem, objective, limits, 1).best.at(0);
}

// Samples by kind of node.
std::vector<std::int64_t> shares(const Problem& problem, const Choice& choice) {
  std::vector<std::int64_t> by_kind(problem.nodes.size(), 0);
  for (std::size_t u = 0; u < choice.uses.size(); ++u)
    for (const Portion& portion : choice.portions[u])
      by_kind[static_cast<std::size_t>(choice.uses[u].kind)] += portion.samples();
  return by_kind;
}
using Shares = std::vector<std::int64_t>;

TEST(KnownAnswers, TwoUnequalWorkersShareByTheirSpeed) {
  const Problem pair = always_on(30, {{"fast", 1}, {"slow", 2}});
  const Choice choice = best(pair, Objective::time);
  EXPECT_EQ(shares(pair, choice), (Shares{20, 10}));
  EXPECT_DOUBLE_EQ(choice.outcome.step_s, 20);
  EXPECT_NEAR(lower_bound(pair, Quantity::step_s, {}), 20, 1e-9 * 20) << "the bound is met";
}

TEST(KnownAnswers, ADeviceThatCostsMoreThanItBringsIsLeftOff) {
  // 10 samples: alone 10 s. With 'far', whose link needs 20 s for the gradients, 20 s at least.
  Problem problem = always_on(10, {{"near", 1}, {"far", 1, 0, 0, 1e6}});
  problem.segments.front().gradient_bytes = 2e7;
  const Choice choice = best(problem, Objective::time);
  EXPECT_EQ(shares(problem, choice), (Shares{10, 0}));
  EXPECT_NEAR(lower_bound(problem, Quantity::step_s, {}), 10, 1e-9 * 10);
}

TEST(KnownAnswers, ASlowLinkMakesOneSiteBetterThanTwo) {
  Problem problem = always_on(40, {{"north", 1, 0, 0, 1e9}, {"south", 1, 0, 0, 1e9}});
  for (NodeKind& each : problem.nodes) each.count = 2;
  problem.segments.front().gradient_bytes = 1e7;
  problem.domains = {{"all", -1}, {"hill", 0, 5e5}, {"shore", 0, 5e5}};
  problem.nodes[0].domain = 1;
  problem.nodes[1].domain = 2;
  // Within a site 20 s; over 5e5 bytes a second, one exchange takes 20 s after 10 s of work.
  EXPECT_EQ(shares(problem, best(problem, Objective::time)), (Shares{40, 0}));
  // A hundred times the bandwidth, and two sites are better.
  for (Domain& domain : problem.domains) domain.uplink_bandwidth *= 100;
  EXPECT_EQ(shares(problem, best(problem, Objective::time)), (Shares{20, 20}));
}

// Computing takes 10 s. Gradients of the last segment are complete after 6 s, those of the
// first after all 10.
TEST(KnownAnswers, LatenciesOfSegmentsPassSideBySideAndBytesOneAfterTheOther) {
  Problem problem = always_on(20, {{"a", 1}, {"b", 1}});
  problem.segments = {{.gradient_bytes = 1, .ready = 1}, {.gradient_bytes = 3, .ready = 0.6}};
  for (NodeKind& node : problem.nodes)
    for (DeviceState& state : node.devices[0].states) {
      state.seconds = state.least.seconds = {{0, 0.4}, {0, 0.6}};
      state.least.joules = {{}, {}};
    }
  const auto step_s = [&](double message_s, double byte_s) {
    problem.exchange = [=](auto, NodeUpdate) { return ExchangeCost{message_s, byte_s}; };
    const Choice choice = best(problem, Objective::time);
    EXPECT_EQ(shares(problem, choice), (Shares{10, 10}));
    return choice.outcome.step_s;
  };
  // All 4 bytes follow the last segment's 6 s, one byte follows the first one's 10 s.
  EXPECT_DOUBLE_EQ(step_s(0, 0.5), 10.5);
  EXPECT_DOUBLE_EQ(step_s(2, 0.5), 12.5) << "once, not for each segment";
  EXPECT_DOUBLE_EQ(step_s(2, 2), 16);
}

TEST(KnownAnswers, ADeadlineNeedsTheHungryGpu) {
  // 100 samples: on 'box' 100 s and 10 J each; on 'gpu' 10 s and 50 J each, 20 W at rest.
  const Problem problem = switched_off(100, {{"box", 1, 5, 10}, {"gpu", 0.1, 20, 500}});
  EXPECT_EQ(shares(problem, best(problem, Objective::energy)), (Shares{100, 0}));
  Limits limits;
  limits.seconds = 50;
  const Choice hurried = best(problem, Objective::energy, limits);
  // 'box' computes for all of 50 s, the rest is for the GPU.
  EXPECT_EQ(shares(problem, hurried), (Shares{50, 50}));
  EXPECT_DOUBLE_EQ(hurried.outcome.energy_j, 50 * 5 + 50 * 10 + 50 * 20 + 50 * 50);
  EXPECT_LE(lower_bound(problem, Quantity::energy_j, limits), hurried.outcome.energy_j);
  EXPECT_GT(lower_bound(problem, Quantity::energy_j, limits),
            best(problem, Objective::energy).outcome.energy_j)
      << "the bound knows of the deadline";
}

TEST(KnownAnswers, IdleWattsMakeAllOffButOneWrong) {
  // Alike, and both draw 100 W whether they compute or not: twice the time is twice the joules.
  const std::vector<Machine> twins{{"one", 1, 100, 10}, {"two", 1, 100, 10}};
  const Problem on = always_on(10, twins);
  EXPECT_EQ(shares(on, best(on, Objective::energy)), (Shares{5, 5}));
  EXPECT_DOUBLE_EQ(best(on, Objective::energy).outcome.energy_j, 5 * 200 + 10 * 10);
  EXPECT_NEAR(lower_bound(on, Quantity::energy_j, {}), 1100, 1e-9 * 1100) << "the bound is met";
  // Where the unused one can be switched off, it is the same with one as with both.
  const Problem off = switched_off(10, {{"one", 1, 100, 10}, {"two", 1, 101, 10}});
  EXPECT_EQ(shares(off, best(off, Objective::energy)), (Shares{10, 0}));
}

TEST(KnownAnswers, APowerCapLeavesTheFastestOut) {
  const Problem problem = switched_off(12, {{"lean", 1, 5, 15}, {"hot", 0.5, 20, 280}});
  EXPECT_EQ(shares(problem, best(problem, Objective::time)), (Shares{4, 8}));
  Limits limits;
  limits.watts = 100;
  EXPECT_EQ(shares(problem, best(problem, Objective::time, limits)), (Shares{12, 0}));
  limits.watts = 300;
  EXPECT_EQ(shares(problem, best(problem, Objective::time, limits)), (Shares{0, 12}));
}

TEST(KnownAnswers, ASlowPowerStateSavesJoulesUntilTheDeadlineIsTight) {
  Problem problem = switched_off(10, {{"box", 1, 10, 90}});
  DeviceState eco = problem.nodes[0].devices[0].states[0];
  eco.name = "eco";  // half as fast at a third of the watts
  eco.seconds = eco.least.seconds = {{0, 2}};
  eco.busy_watts = 30;
  eco.least.joules = {{0, 60}};
  problem.nodes[0].devices[0].states.push_back(eco);
  // 10 s at 100 W, or 20 s at 40 W.
  const Choice slow = best(problem, Objective::energy);
  EXPECT_EQ(slow.uses.at(0).parts.at(0).state, 1);
  EXPECT_DOUBLE_EQ(slow.outcome.energy_j, 800);
  Limits limits;
  limits.seconds = 15;
  EXPECT_EQ(best(problem, Objective::energy, limits).uses.at(0).parts.at(0).state, 0);
}

TEST(KnownAnswers, MemoryDecidesHowMuchAFastDeviceGets) {
  Problem problem = always_on(20, {{"large", 1}, {"small", 0.1}});
  problem.nodes[1].devices[0].most_samples = 5;
  EXPECT_EQ(shares(problem, best(problem, Objective::time)), (Shares{15, 5}));
  EXPECT_NEAR(lower_bound(problem, Quantity::step_s, {}), 15, 1e-9 * 15);
  problem.nodes[0].devices[0].most_samples = 10;
  EXPECT_TRUE(search(problem, Objective::time, {}, 1).best.empty()) << "15 of 20 fit";
  EXPECT_TRUE(std::isinf(lower_bound(problem, Quantity::step_s, {}))) << "and the bound proves it";
}

TEST(KnownAnswers, ADeviceThatExchangesNothingHoldsMore) {
  Problem problem = always_on(20, {{"gpu", 0.1, 5, 50}, {"old", 1, 5, 50}});
  problem.nodes[0].devices[0].most_samples = 12;
  problem.nodes[0].devices[0].most_alone = 20;
  // Beside 'old' 12 and 8 samples, 8 s; alone 2 s.
  EXPECT_EQ(shares(problem, best(problem, Objective::time)), (Shares{20, 0}));
}

TEST(KnownAnswers, AMoneyBoundIsSharpHoweverSmallTheMoney) {
  Problem problem = switched_off(10, {{"owned", 1, 100, 260}});
  problem.money_per_joule = 1e-12;
  const double cost = best(problem, Objective::cost).outcome.cost;
  EXPECT_NEAR(lower_bound(problem, Quantity::cost, {}) / cost, 1, 1e-6);
}

TEST(KnownAnswers, MoneyIsRentOrValueLostAndEnergy) {
  // A thousand steps of 10 samples. Owned: 10 s a step, 3.6 MJ at 0.5 for the MJ. Rented: 1 s.
  Problem problem = switched_off(10, {{"owned", 1, 100, 260}, {"rented", 0.1, 500, 500}});
  problem.images = 10'000;
  problem.money_per_joule = 0.5e-6;
  problem.nodes[0].money_per_s = 1e-4;
  problem.nodes[1].money_per_s = 2e-3;
  problem.nodes[1].pays_energy = false;
  const auto run = [&](Objective objective) {
    return 1000 * best(problem, objective).outcome.cost;
  };
  EXPECT_DOUBLE_EQ(run(Objective::cost), 1000 * 1 * 2e-3) << "1 + 1.8 if owned";
  problem.nodes[1].least_rent_s = 3600;
  EXPECT_DOUBLE_EQ(run(Objective::cost), 10'000 * 1e-4 + 3.6e6 * 0.5e-6) << "7.2 if rented";
  EXPECT_LE(1000 * lower_bound(problem, Quantity::cost, {}), run(Objective::cost) * (1 + 1e-12));
}

TEST(KnownAnswers, ThousandsOfNodesAlikeStaySmall) {
  Problem problem = always_on(100'000, {{"new", 0.01, 50, 200}, {"old", 0.04, 60, 150}});
  problem.nodes[0].count = 6000;
  problem.nodes[1].count = 4000;
  const Found found = search(problem, Objective::time, {}, 1);
  const double bound = lower_bound(problem, Quantity::step_s, {});
  // 6000 * 100 + 4000 * 25 samples a second.
  EXPECT_NEAR(bound, 100'000.0 / 700'000, 1e-9);
  EXPECT_LE(found.best.at(0).outcome.step_s, 1.2 * bound);
  EXPECT_LT(found.tried, 5000);
}

}  // namespace
}  // namespace regatta::optimize
