// Physics that can be computed by hand: shared links, shared cores, joules.
#include "sim/world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/aside.h"

namespace regatta::sim {
namespace {

// A process has one world, so each is made aside; what `play` gives comes back.
std::vector<double> in_world(const World::Shape& shape,
                             const std::function<std::vector<double>(World&)>& play) {
  const std::string bytes = run_aside([&] {
    auto* world = new World(shape);  // never torn down: the process ends
    ByteWriter writer;
    writer.put(play(*world));
    return writer.take();
  });
  return ByteReader(bytes).get<double>();
}

TEST(World, TwoMessagesShareALink) {
  const World::Shape shape{{}, {100}, {{0}}};
  const auto ends = in_world(shape, [](World& world) {
    std::vector<double> done(2);
    world.send(0, 1000, [&] { done[0] = world.now(); });
    world.send(0, 500, [&] { done[1] = world.now(); });
    world.run();
    return done;
  });
  EXPECT_NEAR(ends[1], 10, 1e-6);  // 500 at 50 a second
  EXPECT_NEAR(ends[0], 15, 1e-6);  // 500 at 50, then 500 at 100
}

TEST(World, AMessageIsHeldUpByTheNarrowestLinkAndLeavesTheRestToOthers) {
  // The first may take 30 of the second link's 100, so the other gets 70.
  const World::Shape shape{{}, {30, 100}, {{0, 1}, {1}}};
  const auto ends = in_world(shape, [](World& world) {
    std::vector<double> done(2);
    world.send(0, 300, [&] { done[0] = world.now(); });
    world.send(1, 700, [&] { done[1] = world.now(); });
    world.run();
    return done;
  });
  EXPECT_NEAR(ends[0], 10, 1e-6);
  EXPECT_NEAR(ends[1], 10, 1e-6);
}

TEST(World, TrafficLastsWhileMessagesAreOnTheirWay) {
  const World::Shape shape{{}, {100}, {{0}}};
  const auto found = in_world(shape, [](World& world) {
    // One after the other, then a pause, then one that waits for its latency.
    world.send(0, 100, [&world] { world.send(0, 200, [] {}); });
    world.later(10, [&world] {
      world.send(
          0, 100, [] {}, 2);
    });
    world.run();
    std::vector<double> times;
    for (const World::Traffic& each : world.take_traffic())
      times.insert(times.end(),
                   {each.start, each.end, each.bytes, static_cast<double>(each.messages)});
    times.push_back(static_cast<double>(world.take_traffic().size()));
    return times;
  });
  EXPECT_THAT(found, testing::Pointwise(testing::DoubleNear(1e-6),
                                        {0.0, 3.0, 300.0, 2.0, 10.0, 13.0, 100.0, 1.0, 0.0}));
}

TEST(World, IdleCoresDrawPowerToo) {
  const World::Shape shape{{{2, 10, 30}}, {}, {}};
  const auto found = in_world(shape, [](World& world) {
    world.work(0, 3, [] {});
    world.later(5, [] {});
    world.run();
    return std::vector<double>{world.now(), world.joules(0)};
  });
  EXPECT_NEAR(found[0], 5, 1e-9);
  EXPECT_NEAR(found[1], 2 * 10 * 5 + (30 - 10) * 3, 1e-6);
}

TEST(World, MoreWorkThanCoresSharesThem) {
  const World::Shape shape{{{2, 0, 0}}, {}, {}};
  const auto ends = in_world(shape, [](World& world) {
    std::vector<double> done;
    for (int i = 0; i < 3; ++i) world.work(0, 1, [&] { done.push_back(world.now()); });
    world.run();
    return done;
  });
  for (const double end : ends) EXPECT_NEAR(end, 1.5, 1e-6);
}

TEST(World, MayBeRunAgain) {
  const World::Shape shape{{{1, 1, 2}}, {}, {}};
  const auto ends = in_world(shape, [](World& world) {
    std::vector<double> done;
    for (int i = 0; i < 2; ++i) {
      world.work(0, 1e-6, [&] { done.push_back(world.now()); });
      world.run();
    }
    return done;
  });
  EXPECT_NEAR(ends[0], 1e-6, 1e-12);
  EXPECT_NEAR(ends[1], 2e-6, 1e-12);
}

TEST(Aside, WhatGoesWrongThereIsToldHere) {
  EXPECT_THROW(run_aside([]() -> std::string { throw Error("no wind"); }), Error);
  EXPECT_THROW(run_aside([]() -> std::string { std::abort(); }), Error);
}

}  // namespace
}  // namespace regatta::sim
