#include "profile/profile.h"

#include <gtest/gtest.h>

#include "profile/synthetic_costs.h"

namespace regatta {
namespace {

const std::vector<double> sizes{1, 2, 4, 8, 16, 32};
const std::vector<int> alone_and_all{1, 4};

Profile learned(const Trouble& trouble, int rounds = 15, std::uint64_t seed = 1) {
  Profile profile;
  profile.learn(measured({}, sizes, alone_and_all, rounds, trouble, seed));
  return profile;
}

// The worst of all predictions, between and beyond the sizes that were measured too.
double worst_error(const Profile& profile, const TrueCost& truth = {}) {
  double worst = 0;
  for (const double size : {1.0, 3.0, 8.0, 11.0, 23.0, 32.0, 48.0})
    for (const int busy : {1, 2, 3, 4})
      worst = std::max(
          worst, std::abs(profile.find("work")->at(size, busy).seconds / truth.at(size, busy) - 1));
  return worst;
}

TEST(Profile, RecoversACostThatIsKnown) { EXPECT_LT(worst_error(learned({})), 0.02); }

TEST(Profile, SpikesDoNotMoveIt) { EXPECT_LT(worst_error(learned({.spikes = 0.2})), 0.04); }

TEST(Profile, ABusyNeighbourForAThirdOfTheTimeDoesNotMoveIt) {
  EXPECT_LT(worst_error(learned({.neighbour = 0.35}, 25)), 0.04);
}

TEST(Profile, ABusyNeighbourForMoreThanHalfOfTheTimeDoesNotMoveIt) {
  EXPECT_LT(worst_error(learned({.neighbour = 0.55}, 40)), 0.04);
}

TEST(Profile, ASleepingLaptopDoesNotMoveIt) {
  EXPECT_LT(worst_error(learned({.sleeps = true})), 0.02);
}

TEST(Profile, DriftMovesItNoFurtherThanItsMean) {
  // The truth is 5% slower in the middle of a session that gets 10% slower.
  const TrueCost slower{.fixed = 21e-6, .each = 10.5e-6};
  EXPECT_LT(worst_error(learned({.drift = 0.1}, 25), slower), 0.06);
}

TEST(Profile, AllTroublesAtOnceLeaveItUsable) {
  const Profile profile = learned(
      {.noise = 0.03, .spikes = 0.1, .drift = 0.04, .neighbour = 0.25, .sleeps = true}, 40, 7);
  EXPECT_LT(worst_error(profile), 0.08);
}

TEST(Profile, IntervalsHoldTheTruthAlmostAlways) {
  int held = 0, all = 0;
  const TrueCost truth;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Profile profile = learned({.noise = 0.05, .spikes = 0.05}, 12, seed);
    for (const double size : sizes)
      for (const int busy : alone_and_all) {
        const Estimate found = profile.find("work")->at(size, busy);
        held += found.low <= truth.at(size, busy) && truth.at(size, busy) <= found.high;
        ++all;
      }
  }
  EXPECT_GE(held, all * 93 / 100);
}

TEST(Profile, MoreTimingsMakeIntervalsNarrower) {
  const auto width = [](int rounds) {
    const Estimate found = learned({.noise = 0.1}, rounds).find("work")->at(8, 1);
    return (found.high - found.low) / found.seconds;
  };
  EXPECT_LT(width(100), 0.7 * width(6));
}

TEST(Profile, OneDisturbedSessionIsOutvoted) {
  Profile profile;
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    profile.learn(measured({}, sizes, alone_and_all, 8, {}, seed));
  // Someone else computed from its first to its last timing.
  const TrueCost crowded{.fixed = 60e-6, .each = 30e-6};
  profile.learn(measured(crowded, sizes, alone_and_all, 500, {}, 9));
  EXPECT_LT(worst_error(profile), 0.03);
}

TEST(Profile, OfTwoSessionsTheFasterCounts) {
  Profile profile;
  profile.learn(measured({.fixed = 60e-6, .each = 30e-6}, sizes, alone_and_all, 8, {}));
  profile.learn(measured({}, sizes, alone_and_all, 8, {}));
  EXPECT_LT(worst_error(profile), 0.03);
}

TEST(Profile, FollowsAMachineThatStaysSlower) {
  Profile profile;
  const TrueCost slower{.fixed = 30e-6, .each = 15e-6};
  for (std::uint64_t seed = 1; seed <= 7; ++seed)
    profile.learn(measured({}, sizes, alone_and_all, 8, {}, seed));
  for (std::uint64_t seed = 8; seed <= 12; ++seed)
    profile.learn(measured(slower, sizes, alone_and_all, 8, {}, seed));
  EXPECT_LT(worst_error(profile, slower), 0.03);
}

TEST(Profile, KeepsAFewSessionsHoweverManyThereWere) {
  Profile profile;
  for (std::uint64_t seed = 1; seed <= 40; ++seed)
    profile.learn(measured({}, {1, 2}, {1}, 4, {}, seed));
  const Profile::Entry& entry = profile.entries().at("work");
  EXPECT_EQ(entry.points.size(), 2u);
  EXPECT_EQ(entry.points.front().sessions.size(), Profile::sessions_kept);
}

TEST(Profile, HeldOutErrorTellsACurveFromACorner) {
  EXPECT_LT(learned({}).find("work")->held_out(), 0.03);
  // A cache overflows between 8 and 16 samples.
  Profile cornered;
  std::vector<Observation> seen = measured({}, sizes, {1}, 10, {});
  for (Observation& each : seen)
    if (each.size > 8) each.seconds *= 5;
  cornered.learn(seen);
  EXPECT_GT(cornered.find("work")->held_out(), 0.1);
}

TEST(Profile, NonsenseIsNotLearned) {
  Profile profile;
  profile.learn(std::vector<Observation>{
      {"work", 1, 1, 0}, {"work", 0, 1, 1e-3}, {"work", 1, 0, 1e-3}, {"work", 1, 1, std::nan("")}});
  EXPECT_EQ(profile.find("work"), nullptr);
}

TEST(Profile, TheRuntimesCostsHaveDefaultsUntilTheyAreMeasured) {
  Profile profile;
  EXPECT_EQ(profile.runtime().task, RuntimeCosts{}.task);
  profile.learn(std::vector<Observation>(5, {"runtime task", 1, 1, 9e-6}));
  EXPECT_DOUBLE_EQ(profile.runtime().task, 9e-6);
  EXPECT_EQ(profile.runtime().wake, RuntimeCosts{}.wake);
}

}  // namespace
}  // namespace regatta
