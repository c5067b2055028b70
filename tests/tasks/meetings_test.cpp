// Where workers meet, and chunks with which they arrive together.
#include "tasks/meetings.h"

#include <gtest/gtest.h>

#include <numeric>

#include "models/models.h"
#include "support/executor_run.h"
#include "tune/balance.h"

namespace regatta {
namespace {

// A microsecond for each sample of a chunk, and so many for the chunk itself.
class MadeUpCosts final : public TaskCosts {
 public:
  MadeUpCosts(const Blueprint& blueprint, double fixed) : blueprint_(blueprint), fixed_(fixed) {}
  Estimate of(const Task& task, int) const override {
    const auto samples =
        static_cast<double>(blueprint_.chunks[task.actions.front().chunk.value].capacity);
    const double seconds = 1e-6 * (fixed_ + samples);
    return {seconds, seconds, seconds};
  }
  RuntimeCosts runtime() const override { return {}; }

 private:
  const Blueprint& blueprint_;
  double fixed_;
};

struct Lowered {
  Lowered(const char* model, std::vector<std::int64_t> chunks, std::vector<double> slow)
      : blueprint(blueprint_of(model, std::move(chunks), std::move(slow))),
        list(lower(blueprint, ListKind::train)) {}
  static Blueprint blueprint_of(const char* model, std::vector<std::int64_t> chunks,
                                std::vector<double> slow) {
    const Graph graph = fuse(build_model(model));
    const int workers = static_cast<int>(chunks.size());
    const std::int64_t batch = std::accumulate(chunks.begin(), chunks.end(), std::int64_t{0});
    Plan plan = plan_for(graph, batch,
                         {.workers = workers, .chunks = chunks, .segments = std::string("block")});
    plan.nodes[0].groups[0].slow = std::move(slow);
    return make_blueprint(graph, plan, {}, true);
  }
  Blueprint blueprint;
  TaskList list;
};

TEST(Meetings, WithoutBatchNormChunksMeetAtTheEndOfTheStep) {
  const Lowered made("lenet5", {8, 8}, {});
  const std::vector<Meeting> found =
      meetings(made.blueprint, made.list, MadeUpCosts(made.blueprint, 0));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_DOUBLE_EQ(found[0].first, found[0].last);
  EXPECT_EQ(apart(found), 0);
}

TEST(Meetings, EachBatchNormIsOneOnTheWayForwardAndOneOnTheWayBack) {
  const Lowered made("resnet18", {8, 8}, {});
  // Twenty batch norms, and the end.
  EXPECT_EQ(meetings(made.blueprint, made.list, MadeUpCosts(made.blueprint, 0)).size(), 41u);
}

TEST(Meetings, OfEqualChunksTheFastWorkerWaitsForTheSlow) {
  const Lowered made("resnet18", {8, 8}, {1, 2});
  const std::vector<Meeting> found =
      meetings(made.blueprint, made.list, MadeUpCosts(made.blueprint, 0));
  EXPECT_NEAR(apart(found), 0.5, 1e-9);
}

TEST(Meetings, ChunksInProportionToSpeedArriveTogetherEverywhere) {
  const Lowered equal("resnet18", {15, 15}, {1, 2});
  const std::vector<std::int64_t> chunks = balanced_chunks(
      {15, 15}, chunk_seconds(equal.blueprint, equal.list, MadeUpCosts(equal.blueprint, 0)));
  EXPECT_EQ(chunks, (std::vector<std::int64_t>{20, 10}));
  const Lowered made("resnet18", chunks, {1, 2});
  for (const Meeting& each : meetings(made.blueprint, made.list, MadeUpCosts(made.blueprint, 0)))
    EXPECT_LT(each.last - each.first, 0.05 * each.last);
}

// Work beside another takes half as long again.
class CrowdedCosts final : public TaskCosts {
 public:
  Estimate of(const Task&, int busy) const override {
    const double seconds = busy > 1 ? 1.5e-6 : 1e-6;
    return {seconds, seconds, seconds};
  }
  RuntimeCosts runtime() const override { return {}; }
};

TEST(Meetings, ASlowedWorkerIsInTheWayOnlyWhileItComputes) {
  const Lowered alike("lenet5", {8, 8}, {});
  const auto crowded = chunk_seconds(alike.blueprint, alike.list, CrowdedCosts());
  EXPECT_DOUBLE_EQ(crowded[0], crowded[1]);
  const Lowered made("lenet5", {8, 8}, {1, 2});
  const auto found = chunk_seconds(made.blueprint, made.list, CrowdedCosts());
  EXPECT_NEAR(found[0], crowded[0] * 1.25 / 1.5, 1e-12);
  EXPECT_NEAR(found[1], 2 * crowded[1], 1e-12);
}

TEST(Meetings, WhatAChunkCostsByItselfMovesSamplesToTheFastWorker) {
  // 2 (20 + n) = 20 + (60 - n): the slow one should get 40 / 3.
  std::vector<std::int64_t> chunks{30, 30};
  for (int round = 0; round < 4; ++round) {
    const Lowered made("lenet5", chunks, {1, 2});
    chunks = balanced_chunks(
        chunks, chunk_seconds(made.blueprint, made.list, MadeUpCosts(made.blueprint, 20)));
  }
  EXPECT_EQ(chunks[0] + chunks[1], 60);
  EXPECT_NEAR(static_cast<double>(chunks[1]), 40.0 / 3, 1);
}

}  // namespace
}  // namespace regatta
