#include "tune/contest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace regatta {
namespace {

using testing::_;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::Gt;
using testing::IsEmpty;
using testing::Lt;

// Turns of a second each that take what `truth` says, with errors.
class Stage {
 public:
  explicit Stage(std::vector<double> truth, double time = 1e9, double errors = 0.1,
                 unsigned seed = 1)
      : truth_(std::move(truth)), left_(time), errors_(errors), chance_(seed) {}

  std::vector<double> play() {
    ContestRules rules;
    rules.turn = [this](std::size_t actor) {
      turns_.push_back(actor);
      left_ -= 1;
      const double chance = static_cast<double>(chance_()) / std::mt19937::max();
      return truth_[actor] * (1 + errors_ * (2 * chance - 1));
    };
    rules.seconds_left = [this] { return left_; };
    return contest(truth_.size(), rules);
  }
  std::ptrdiff_t turns(std::size_t actor) const { return std::ranges::count(turns_, actor); }
  const std::vector<std::size_t>& turns() const { return turns_; }

 private:
  std::vector<double> truth_;
  double left_, errors_;
  std::mt19937 chance_;
  std::vector<std::size_t> turns_;
};

TEST(Contest, TheFastestIsToldAsFastAsItIsNotAsItWasInItsLuckiestTurns) {
  double told = 0;
  constexpr int plays = 200;
  for (unsigned seed = 0; seed < plays; ++seed)
    told += std::ranges::min(Stage(std::vector(8, 1.0), 1e9, 0.1, seed).play());
  EXPECT_NEAR(told / plays, 1, 0.01) << "chosen by its own turns it would be 4% less";
}

TEST(Contest, WhoFallsFarBehindHasNoFurtherTurn) {
  Stage stage({1, 1.6, 1.005}, 1e9, 0.001);
  const std::vector<double> told = stage.play();
  EXPECT_EQ(stage.turns(1), 1);
  EXPECT_EQ(stage.turns(2), 8) << "it is never far behind";
  EXPECT_EQ(stage.turns(0), 8 + 3);
  EXPECT_NEAR(told[1], 1.6, 0.01);
}

// On a machine whose turns differ by 40% three of them say little.
TEST(Contest, WhereTurnsDisagreeTheBestHasMoreOfThem) {
  double off = 0, turns = 0;
  constexpr int plays = 200;
  for (unsigned seed = 0; seed < plays; ++seed) {
    Stage stage({1, 9}, 1e9, 0.2, seed);
    off += std::abs(stage.play().front() - 1) / plays;
    EXPECT_LE(stage.turns(0), 9);
    turns += static_cast<double>(stage.turns(0)) / plays;
  }
  EXPECT_LT(off, 0.065) << "0.075 by three turns";
  EXPECT_GT(turns, 7) << "few agree by chance";
}

TEST(Contest, OneLastTurnThatWasDisturbedCostsOneMore) {
  std::vector<std::size_t> turns;
  ContestRules rules;
  rules.seconds_left = [] { return 1e9; };
  rules.turn = [&](std::size_t actor) {
    turns.push_back(actor);
    return actor == 1 ? 9.0 : std::ranges::count(turns, 0u) == 3 ? 1.5 : 1.0;
  };
  EXPECT_EQ(contest(2, rules).front(), 1.0);
  EXPECT_EQ(std::ranges::count(turns, 0u), 4);
}

TEST(Contest, AFasterOneIsFoundAmongErrorsThatAreLarger) {
  int right = 0;
  for (unsigned seed = 0; seed < 50; ++seed) {
    const std::vector<double> told = Stage({1.06, 1, 1.06, 1.06}, 1e9, 0.1, seed).play();
    right += std::ranges::min_element(told) - told.begin() == 1;
  }
  EXPECT_GT(right, 33) << "by chance it would be 12";
}

TEST(Contest, WithoutTimeTheTwoMostPromisingHaveATurn) {
  Stage stage({1, 1, 1}, 0.5);
  EXPECT_THAT(stage.play(), ElementsAre(Gt(0), Gt(0), 0));
  EXPECT_THAT(contest(0, {}), IsEmpty());
}

// What disturbs a turn makes it longer: nobody drops out by one such turn.
TEST(Contest, OneDisturbedTurnIsForgiven) {
  std::vector<std::size_t> turns;
  ContestRules rules;
  rules.seconds_left = [] { return 1e9; };
  rules.turn = [&](std::size_t actor) {
    turns.push_back(actor);
    return actor == 0 ? 1.1 : turns.size() == 2 ? 1.5 : 1.0;
  };
  const std::vector<double> told = contest(2, rules);
  EXPECT_LT(told[1], told[0]);
}

TEST(Contest, HalfOfLittleTimeIsKeptForTheLastTurnsOfTheBest) {
  Stage stage({1.1, 1, 1, 1}, 6, 0.001);
  EXPECT_THAT(stage.play(), ElementsAre(Gt(1.05), Lt(1.05), Lt(1.05), 0));
  EXPECT_THAT(stage.turns(), ElementsAre(0, 1, 2, _, _, _));
  EXPECT_EQ(stage.turns(stage.turns().back()), 4);
}

// Eighteen turns for eight who are nearly equal: one each, one of the best five, and up to five of
// one.
TEST(Contest, WhereTimeIsShortFewerGoOn) {
  Stage stage({1, 1.001, 1.002, 1.003, 1.004, 1.005, 1.006, 1.007}, 18, 0.0001);
  stage.play();
  const std::vector<std::size_t> expected{0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 0, 0, 0};
  EXPECT_THAT(stage.turns(), ElementsAreArray(expected));
}

// Turns that differ by a tenth, of eight equals, and time for two rounds: the least of sixteen
// would be 12% less.
TEST(Contest, WhereTimeIsShortTheBestIsToldByItsLastTurnsToo) {
  double told = 0, off = 0;
  constexpr int plays = 400;
  for (unsigned seed = 0; seed < plays; ++seed) {
    const double best = std::ranges::min(Stage(std::vector(8, 1.0), 18, 0.15, seed).play());
    told += best / plays;
    off += std::abs(best - 1) / plays;
  }
  EXPECT_NEAR(told, 1, 0.015);
  EXPECT_LT(off, 0.05);
}

TEST(Contest, WhoDroppedOutIsToldAsFarBehindAsItWas) {
  const std::vector<double> told = Stage({1, 1.3, 1.6}, 1e9, 0.001).play();
  EXPECT_NEAR(told[1] / told[0], 1.3, 0.01);
  EXPECT_NEAR(told[2] / told[0], 1.6, 0.01);
}

// It seems fastest by its one lucky turn, after which it dropped out.
TEST(Contest, TheLastTurnsAreOfOneThatStayedIn) {
  std::vector<std::size_t> turns;
  ContestRules rules;
  rules.seconds_left = [] { return 1e9; };
  rules.turn = [&](std::size_t actor) {
    const auto before = std::ranges::count(turns, actor);
    turns.push_back(actor);
    if (actor == 1) return before == 0 ? 1.15 : 9.0;
    return before == 0 ? 0.9 : 1.3;
  };
  const std::vector<double> told = contest(2, rules);
  EXPECT_EQ(turns.back(), 0);
  EXPECT_LT(told[0], told[1]);
}

}  // namespace
}  // namespace regatta
