#include "tune/contest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace regatta {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::Gt;
using testing::IsEmpty;

// Measurements of a second each that give what `truth` says, with errors.
class Bench {
 public:
  explicit Bench(std::vector<double> truth, double time = 1e9, double errors = 0.1,
                 unsigned seed = 1)
      : truth_(std::move(truth)), left_(time), errors_(errors), chance_(seed) {}

  std::vector<double> run() {
    ContestRules rules;
    rules.measure = [this](std::size_t candidate) {
      measured_.push_back(candidate);
      left_ -= 1;
      const double chance = static_cast<double>(chance_()) / std::mt19937::max();
      return Seconds(truth_[candidate] * (1 + errors_ * (2 * chance - 1)));
    };
    rules.time_left = [this] { return Seconds(left_); };
    std::vector<double> times;
    for (const Seconds time : contest(truth_.size(), rules)) times.push_back(time.count());
    return times;
  }
  std::ptrdiff_t measured(std::size_t candidate) const {
    return std::ranges::count(measured_, candidate);
  }
  const std::vector<std::size_t>& measured() const { return measured_; }

 private:
  std::vector<double> truth_;
  double left_, errors_;
  std::mt19937 chance_;
  std::vector<std::size_t> measured_;
};

TEST(Contest, HalvesTheCandidatesAndMeasuresTheRestTwiceAsOften) {
  Bench bench({1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7}, 1e9, 0.001);
  const std::vector<double> times = bench.run();
  const std::vector<std::ptrdiff_t> expected{1 + 2 + 4 + 3, 1 + 2 + 4, 1 + 2, 1 + 2, 1, 1, 1, 1};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(bench.measured(i), expected[i]) << i;
  EXPECT_EQ(bench.measured().size(), measurements_of_contest(8));
  for (std::size_t i = 0; i < times.size(); ++i)
    EXPECT_NEAR(times[i], 1 + 0.1 * static_cast<double>(i), 0.01) << i;
}

TEST(Contest, MeasuresCandidatesInTurnSoThatADisturbanceHitsAllAlike) {
  Bench bench({1, 1.1, 1.2, 1.3}, 1e9, 0.001);
  bench.run();
  const std::vector<std::size_t> expected{0, 1, 2, 3, 0, 1, 0, 1, 0, 0, 0};
  EXPECT_THAT(bench.measured(), ElementsAreArray(expected));
}

TEST(Contest, TheTimeOfTheFastestIsNotThatOfItsLuckiestMeasurements) {
  double told = 0;
  constexpr int runs = 200;
  for (unsigned seed = 0; seed < runs; ++seed)
    told += std::ranges::min(Bench(std::vector(8, 1.0), 1e9, 0.1, seed).run());
  EXPECT_NEAR(told / runs, 1, 0.01) << "by the measurements that chose it it would be 6% less";
}

TEST(Contest, AFasterOneIsFoundAmongErrorsThatAreLarger) {
  int right = 0;
  for (unsigned seed = 0; seed < 50; ++seed) {
    const std::vector<double> times = Bench({1.06, 1, 1.06, 1.06}, 1e9, 0.1, seed).run();
    right += std::ranges::min_element(times) - times.begin() == 1;
  }
  EXPECT_GT(right, 25) << "by chance it would be 12";
}

TEST(Contest, ADisturbedMeasurementOfALaterRoundIsIgnored) {
  std::vector<std::size_t> measured;
  ContestRules rules;
  rules.time_left = [] { return Seconds(1e9); };
  rules.measure = [&](std::size_t candidate) {
    measured.push_back(candidate);
    const bool disturbed = candidate == 1 && std::ranges::count(measured, 1u) == 2;
    return Seconds(candidate == 0 ? 1.1 : candidate == 1 ? (disturbed ? 3.0 : 1.0) : 2.0);
  };
  const std::vector<Seconds> times = contest(4, rules);
  EXPECT_EQ(times[1], Seconds(1.0));
  EXPECT_LT(times[1], times[0]);
}

TEST(Contest, WithoutTimeTheFirstTwoAreMeasured) {
  Bench bench({1, 1, 1}, 0.5);
  EXPECT_THAT(bench.run(), ElementsAre(Gt(0), Gt(0), 0));
  EXPECT_THAT(contest(0, {}), IsEmpty());
}

TEST(Contest, EndsWhenTimeIsUp) {
  Bench bench({1, 1.1, 1.2, 1.3}, 6, 0.001);
  EXPECT_THAT(bench.run(), ElementsAre(Gt(0.99), Gt(1.09), Gt(1.19), Gt(1.29)));
  EXPECT_EQ(bench.measured().size(), 6u);
}

TEST(Contest, OfALoneCandidateTheTimeIsTold) {
  Bench bench({2}, 1e9, 0.001);
  EXPECT_NEAR(bench.run().front(), 2, 0.01);
  EXPECT_EQ(bench.measured().size(), measurements_of_contest(1));
}

}  // namespace
}  // namespace regatta
