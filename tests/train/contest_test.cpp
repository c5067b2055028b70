#include "train/contest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace regatta {
namespace {

// Turns of a second each that take what `truth` says, with errors of up to a tenth.
class Stage {
 public:
  explicit Stage(std::vector<double> truth, double time = 1e9, unsigned seed = 1)
      : truth_(std::move(truth)), left_(time), chance_(seed) {}

  std::vector<double> play() {
    ContestRules rules;
    rules.turn_seconds = 1;
    rules.turn = [this](std::size_t actor) {
      ++turns_[actor];
      left_ -= 1;
      return truth_[actor] * std::uniform_real_distribution(0.9, 1.1)(chance_);
    };
    rules.seconds_left = [this] { return left_; };
    return contest(truth_.size(), rules);
  }
  int turns(std::size_t actor) const { return turns_.at(actor); }

 private:
  std::vector<double> truth_;
  double left_;
  std::mt19937 chance_;
  std::map<std::size_t, int> turns_;
};

TEST(Contest, TheFastestIsToldAsFastAsItIsNotAsItWasInItsLuckiestTurns) {
  double told = 0;
  constexpr int plays = 200;
  for (unsigned seed = 0; seed < plays; ++seed)
    told += std::ranges::min(Stage(std::vector(8, 1.0), 1e9, seed).play());
  EXPECT_NEAR(told / plays, 1, 0.01) << "chosen by its own turns it would be 4% less";
}

TEST(Contest, WhoFallsFarBehindHasNoFurtherTurn) {
  Stage stage({1, 1.5, 1.02});
  const std::vector<double> told = stage.play();
  EXPECT_EQ(stage.turns(1), 1);
  EXPECT_GE(stage.turns(0), 2);
  EXPECT_GE(stage.turns(2), 2);
  EXPECT_NEAR(told[1], 1.5, 0.3);
}

TEST(Contest, AFasterOneIsFoundAmongErrorsThatAreLarger) {
  int right = 0;
  for (unsigned seed = 0; seed < 50; ++seed) {
    const std::vector<double> told = Stage({1.06, 1, 1.06, 1.06}, 1e9, seed).play();
    right += std::ranges::min_element(told) - told.begin() == 1;
  }
  EXPECT_GT(right, 33) << "by chance it would be 12";
}

TEST(Contest, EveryOneHasATurnHoweverLittleTimeThereIs) {
  Stage stage({1, 1, 1}, 0.5);
  EXPECT_EQ(stage.play().size(), 3);
  for (std::size_t actor = 0; actor < 3; ++actor) EXPECT_EQ(stage.turns(actor), 1);
}

TEST(Contest, KeepsTimeForTheLastTurnsOfTheBest) {
  Stage stage({1, 1.005}, 11);
  stage.play();
  EXPECT_EQ(stage.turns(0) + stage.turns(1), 11) << "four rounds of two, and three of the best";
}

}  // namespace
}  // namespace regatta
