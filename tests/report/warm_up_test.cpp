// Series of step durations with known truth.
#include "report/warm_up.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/random.h"

namespace regatta {
namespace {

constexpr std::uint64_t seeds = 20;

// `level` gives each step's duration before noise; noise is a share of it.
std::vector<double> series(std::size_t steps, double noise, std::uint64_t seed,
                           const std::function<double(double)>& level) {
  std::vector<double> durations;
  for (std::size_t i = 0; i < steps; ++i)
    durations.push_back(level(static_cast<double>(i)) *
                        std::exp(noise * static_cast<double>(random_normal(seed, 11, i))));
  return durations;
}

TEST(WarmUp, SharpIsFoundToTheStep) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const WarmUp found =
        find_warm_up(series(300, 0.02, seed, [](double i) { return i < 40 ? 0.03 : 0.01; }));
    EXPECT_EQ(found.course, Course::warm_up);
    EXPECT_NEAR(static_cast<double>(found.steps), 40, 1) << "seed " << seed;
    EXPECT_NEAR(found.seconds, 40 * 0.03, 0.05);
    EXPECT_NEAR(found.steady, 0.01, 0.0003);
    EXPECT_EQ(found.steady_until, 300u);
  }
}

TEST(WarmUp, OneSlowFirstStepIsOne) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const WarmUp found =
        find_warm_up(series(50, 0.05, seed, [](double i) { return i < 1 ? 0.2 : 0.01; }));
    EXPECT_EQ(found.steps, 1u) << "seed " << seed;
    EXPECT_EQ(found.course, Course::warm_up);
  }
}

// Half as slow again at first, dying away: the truth is when it is within the tolerance.
TEST(WarmUp, GradualEndsWhereLittleIsLeftOfIt) {
  const double truth = 30 * std::log(0.5 / 0.05);  // 69 steps
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const WarmUp found = find_warm_up(
        series(600, 0.02, seed, [](double i) { return 0.01 * (1 + 0.5 * std::exp(-i / 30)); }));
    EXPECT_EQ(found.course, Course::warm_up);
    EXPECT_NEAR(static_cast<double>(found.steps), truth, 0.4 * truth) << "seed " << seed;
    EXPECT_NEAR(found.steady, 0.01, 0.0003);
  }
}

TEST(WarmUp, NoneIsNone) {
  for (const double noise : {0.0, 0.01, 0.1})
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      const WarmUp found = find_warm_up(series(400, noise, seed, [](double) { return 0.01; }));
      EXPECT_EQ(found.course, Course::flat) << "noise " << noise << ", seed " << seed;
      EXPECT_EQ(found.steps, 0u);
      EXPECT_EQ(found.seconds, 0);
    }
}

// Every tenth step takes three times as long, and all of them scatter by a fifth.
TEST(WarmUp, IsFoundUnderHeavyNoise) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    std::vector<double> durations =
        series(500, 0.2, seed, [](double i) { return i < 60 ? 0.03 : 0.01; });
    for (std::size_t i = 5; i < durations.size(); i += 10) durations[i] *= 3;
    const WarmUp found = find_warm_up(durations);
    EXPECT_EQ(found.course, Course::warm_up);
    EXPECT_NEAR(static_cast<double>(found.steps), 60, 4) << "seed " << seed;
  }
}

TEST(WarmUp, LaterSlowingDownIsNotWarmUp) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const WarmUp found = find_warm_up(series(400, 0.03, seed, [](double i) {
      return i < 20 ? 0.02 : i < 280 ? 0.01 : 0.014;
    }));
    EXPECT_EQ(found.course, Course::warm_up);
    EXPECT_NEAR(static_cast<double>(found.steps), 20, 1) << "seed " << seed;
    EXPECT_NEAR(static_cast<double>(found.steady_until), 280, 3);
  }
}

TEST(WarmUp, AFastStartBeforeASlowerSteadyStateIsASlowdown) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const WarmUp found =
        find_warm_up(series(300, 0.02, seed, [](double i) { return i < 50 ? 0.008 : 0.01; }));
    EXPECT_EQ(found.course, Course::slowdown);
    EXPECT_NEAR(static_cast<double>(found.steps), 50, 1) << "seed " << seed;
  }
}

TEST(WarmUp, ARunThatOnlyGetsSlowerHasNoSteadyState) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const WarmUp found =
        find_warm_up(series(400, 0.02, seed, [](double i) { return 0.01 * (1 + i / 400); }));
    EXPECT_EQ(found.course, Course::unsteady) << "seed " << seed;
    EXPECT_EQ(found.steps, 0u);
  }
}

TEST(WarmUp, OfLongRunsIsFoundInGoodTime) {
  const WarmUp found =
      find_warm_up(series(100'000, 0.1, 1, [](double i) { return i < 5000 ? 0.02 : 0.01; }));
  EXPECT_NEAR(static_cast<double>(found.steps), 5000, 50);
}

TEST(WarmUp, OfVeryShortRunsIsTakenAsItComes) {
  EXPECT_EQ(find_warm_up({}).steps, 0u);
  EXPECT_EQ(find_warm_up(std::vector<double>{0.1}).steps, 0u);
  EXPECT_EQ(find_warm_up(std::vector<double>{0.5, 0.1, 0.1, 0.1}).steps, 1u);
}

}  // namespace
}  // namespace regatta
