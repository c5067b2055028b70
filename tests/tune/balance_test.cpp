// Samples move from the late worker to the early one, by given times.
#include "tune/balance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/models.h"
#include "support/executor_run.h"

namespace regatta {
namespace {

using testing::ElementsAre;

using Chunks = std::vector<std::int64_t>;

TEST(BalancedChunks, MoveFromTheLateToTheEarly) {
  EXPECT_EQ(balanced_chunks({30, 30}, {1, 2}), (Chunks{40, 20}));
  EXPECT_EQ(balanced_chunks({40, 20}, {1, 1}), (Chunks{40, 20}));
  EXPECT_EQ(balanced_chunks({40, 20}, {0.37, 0.389}), (Chunks{41, 19}));
  EXPECT_EQ(balanced_chunks({10, 10, 10}, {1, 1, 4}), (Chunks{14, 13, 3}));
}

// Two layers: one takes a sample's time, the other also the same for every chunk; the second
// worker is half as fast.
TriedShares tried(const Chunks& chunks, double fixed) {
  TriedShares made{.chunks = chunks, .seconds = {}};
  const double fast = static_cast<double>(chunks[0]), slow = 2 * static_cast<double>(chunks[1]);
  for (const double more : {0.0, fixed}) {
    const double first = fast + more, second = slow + 2 * more;
    made.way += std::max(first, second);
    made.waited += std::abs(first - second);
  }
  made.seconds = {2 * fast + fixed, 2 * slow + 2 * fixed};
  return made;
}

Chunks searched(double fixed, Chunks chunks, std::size_t* trials = nullptr) {
  std::size_t looks = 0;
  const std::vector<TriedShares> all = search_shares(chunks, 1, [&](const Chunks& each) {
    if (++looks > 20) ADD_FAILURE() << "no end";
    return looks > 20 ? std::nullopt : std::optional(tried(each, fixed));
  });
  if (trials) *trials = all.size();
  return best_shares(all).chunks;
}

TEST(NextShares, FindTheRightOnesFromWrongPredictions) {
  EXPECT_EQ(searched(0, {30, 30}), (Chunks{40, 20}));
  EXPECT_EQ(searched(0, {55, 5}), (Chunks{40, 20}));
  std::size_t trials = 0;
  EXPECT_EQ(searched(0, {40, 20}, &trials), (Chunks{40, 20}));
  EXPECT_EQ(trials, 1u);
}

TEST(NextShares, AreNoFurtherApartThanAnyOthers) {
  for (const double fixed : {2.0, 5.0, 12.0, 40.0}) {
    double least = 1;
    for (std::int64_t slow = 1; slow < 60; ++slow)
      least = std::min(least, tried({60 - slow, slow}, fixed).apart());
    EXPECT_NEAR(tried(searched(fixed, {40, 20}), fixed).apart(), least, 0.02) << fixed;
  }
}

TEST(TriedShares, SurviveTheProfile) {
  const TriedShares seen = tried({41, 19}, 5);
  Profile profile;
  profile.learn(observations_of("step a", seen));
  const auto back = stored_shares("step a", {41, 19}, profile);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->chunks, seen.chunks);
  EXPECT_NEAR(back->apart(), seen.apart(), 1e-9);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(back->seconds[i], seen.seconds[i], 1e-9);
  EXPECT_FALSE(stored_shares("step b", {41, 19}, profile));
}

TEST(TriedShares, TellWorkersApartWhereTheyMeetAndInAll) {
  const Graph graph = fuse(build_model("lenet5"));
  const Blueprint blueprint = make_blueprint(
      graph, plan_for(graph, 60, {.workers = 2, .chunks = Chunks{40, 20}, .segments = "block"}), {},
      true);
  const TaskList list = lower(blueprint, ListKind::train);
  std::vector<double> seconds;
  for (const Task& task : list.tasks)
    seconds.push_back(task.actions.front().chunk == ChunkId{0} ? 1.0 : 0.9);
  const TriedShares found = tried_shares(blueprint, list, seconds);
  EXPECT_THAT(found.chunks, ElementsAre(40, 20));
  EXPECT_NEAR(found.apart(), 0.1, 1e-9);
  EXPECT_NEAR(found.apart_in_all(), 0.1, 1e-9);
}

}  // namespace
}  // namespace regatta
