// Bounds of a batch that is cut into chunks on the cores of one node.
#include "optimize/chunks.h"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <random>

#include "optimize/bound.h"

namespace regatta::optimize {
namespace {

// A node of workers with these speeds, where a chunk of s samples takes chunk_s[s - 1] seconds of a
// worker of speed 1, and each second draws a joule.
Problem node_of(const std::vector<double>& speeds, const std::vector<double>& chunk_s,
                double update_s = 0, double meeting_s = 0) {
  const double together = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  DeviceState state;
  double least = std::numeric_limits<double>::infinity();
  std::vector<ChunkCost> chunks;
  for (std::size_t i = 0; i < chunk_s.size(); ++i) {
    chunks.push_back({chunk_s[i], chunk_s[i] / together, chunk_s[i]});
    least = std::min(least, chunk_s[i] / static_cast<double>(i + 1));
  }
  state.seconds = state.least.seconds = {{0, least / together}};
  state.least.joules = {{0, least}};
  state.least.chunks = {chunks};
  state.least.update_s = {update_s / together};
  state.least.update_j = {update_s};
  state.least.meeting_s = meeting_s / together;
  state.least.meeting_j = meeting_s;
  state.busy_watts = 1;
  Device device;
  device.states = {state};
  NodeKind node;
  node.devices = {device};
  Problem problem;
  problem.batch = problem.images = std::ssize(chunk_s);
  problem.nodes = {node};
  return problem;
}

std::vector<double> line(double fixed, double each, int samples) {
  std::vector<double> seconds;
  for (int s = 1; s <= samples; ++s) seconds.push_back(fixed + each * s);
  return seconds;
}

Limits deadline(double seconds) {
  Limits limits;
  limits.seconds = seconds;
  return limits;
}

double step_bound(const Problem& problem, const Limits& limits = {}) {
  return lower_bound(problem, Quantity::step_s, limits);
}

TEST(ChunkBound, OfTwoEqualWorkersIsHalfTheBatchEach) {
  // One chunk of eight takes 9 s; both workers could share its work in 4.5 s if it had no end.
  EXPECT_NEAR(step_bound(node_of({1, 1}, line(1, 1, 8))), 5, 1e-3);
}

TEST(ChunkBound, OfUnequalWorkersLetsThemShareTwoChunks) {
  // 10 s of work in two chunks at a speed of 1.5; chunks of 5 and 3 end in 6 s at the earliest.
  EXPECT_NEAR(step_bound(node_of({1, 0.5}, line(1, 1, 8))), 10 / 1.5, 1e-3);
  // The fast worker cannot compute the chunk of 7 in less than 8 s; in smaller ones there is more
  // work: 6 and 2 samples take 10 s at a speed of 1.1.
  EXPECT_NEAR(step_bound(node_of({1, 0.1}, line(1, 1, 8))), 9, 1e-3) << "the fast one alone";
}

TEST(ChunkBound, CountsTheStepOfTheParametersOnceAndWhatMeets) {
  EXPECT_NEAR(step_bound(node_of({1, 1}, line(1, 1, 8), 2)), 6, 1e-3);
  EXPECT_NEAR(step_bound(node_of({1, 1}, line(1, 1, 8), 2, 1)), 6.5, 1e-3);
  // One after the other takes 9 s + 1 s of update by both: too long to be worth not meeting.
  EXPECT_NEAR(step_bound(node_of({1, 1}, line(1, 1, 8), 2, 10)), 9, 1e-3);
}

TEST(ChunkBound, OfJoulesRisesWhereADeadlineForbidsLargeChunks) {
  const Problem problem = node_of({1, 1}, line(1, 1, 8));
  EXPECT_NEAR(lower_bound(problem, Quantity::energy_j, {}), 9, 1e-9);
  EXPECT_NEAR(lower_bound(problem, Quantity::energy_j, deadline(5.5)), 10, 1e-9);
  EXPECT_TRUE(std::isinf(step_bound(problem, deadline(4.9))));
}

TEST(ChunkBound, DoesNotDivideASample) {
  EXPECT_NEAR(step_bound(node_of({1, 1}, {1})), 1, 1e-3);
  // Three of them may change workers on their way: they need as long as if they were divided.
  EXPECT_NEAR(step_bound(node_of({1, 1}, line(0, 1, 3))), 1.5, 1e-3);
}

// The shortest plan, and the leanest of those that take no longer than `longest`: every way to cut
// the batch, every way to deal the chunks out.
struct Best {
  double step_s = std::numeric_limits<double>::infinity();
  double energy_j = std::numeric_limits<double>::infinity();
};
Best best_by_trying_all(const std::vector<double>& speeds, const std::vector<double>& chunk_s,
                        double update_s, double meeting_s,
                        double longest = std::numeric_limits<double>::infinity()) {
  Best best;
  const double together = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  std::vector<double> work(speeds.size(), 0);
  const std::function<void(std::size_t, std::size_t)> deal = [&](std::size_t left,
                                                                 std::size_t most) {
    if (left == 0) {
      const auto busy = std::ranges::count_if(work, [](double each) { return each > 0; });
      const double after = update_s + (busy > 1 ? meeting_s : 0);
      const double all = std::accumulate(work.begin(), work.end(), 0.0) + after;
      double step = all / together;  // steps of parameters fill gaps as well as they can
      for (std::size_t w = 0; w < work.size(); ++w) step = std::max(step, work[w] / speeds[w]);
      best.step_s = std::min(best.step_s, step);
      if (step <= longest) best.energy_j = std::min(best.energy_j, all);
      return;
    }
    for (std::size_t size = std::min(left, most); size > 0; --size)
      for (double& mine : work) {
        mine += chunk_s[size - 1];
        deal(left - size, size);
        mine -= chunk_s[size - 1];
      }
  };
  deal(chunk_s.size(), chunk_s.size());
  return best;
}

TEST(ChunkBound, IsNeverAboveAnyPlan) {
  std::mt19937 random(7);
  const auto real = [&](double least, double most) {
    return least + (most - least) * (static_cast<double>(random()) / 4294967295.0);
  };
  int tight = 0;
  for (int number = 0; number < 200; ++number) {
    SCOPED_TRACE(number);
    std::vector<double> speeds{1}, chunk_s;
    const auto others = random() % 3;
    for (unsigned i = 0; i < others; ++i) speeds.push_back(real(0.2, 1));
    const auto samples = 2 + random() % 5;
    double seconds = real(0, 2);
    for (unsigned s = 0; s < samples; ++s) chunk_s.push_back(seconds += real(0.1, 2));
    const double update = random() % 2 ? real(0, 2) : 0, meeting = random() % 2 ? real(0, 2) : 0;
    const Problem problem = node_of(speeds, chunk_s, update, meeting);
    const Best best = best_by_trying_all(speeds, chunk_s, update, meeting);
    const double bound = step_bound(problem);
    EXPECT_LE(bound, best.step_s * (1 + 1e-9));
    EXPECT_LE(lower_bound(problem, Quantity::energy_j, {}), best.energy_j * (1 + 1e-9));
    // The leanest of the plans that are hardly longer than the shortest.
    const double longest = 1.05 * best.step_s;
    EXPECT_LE(lower_bound(problem, Quantity::energy_j, deadline(longest)),
              best_by_trying_all(speeds, chunk_s, update, meeting, longest).energy_j * (1 + 1e-9));
    tight += bound > 0.95 * best.step_s ? 1 : 0;
  }
  EXPECT_GT(tight, 100) << "of 200 bounds are within 5% of the best plan";
}

}  // namespace
}  // namespace regatta::optimize
