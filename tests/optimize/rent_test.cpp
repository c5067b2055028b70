// Own machines against rented ones, by hand.
#include "optimize/rent.h"

#include <gtest/gtest.h>

namespace regatta::optimize {
namespace {

RunCost run(const Range& money) {
  RunCost cost;
  cost.money = money;
  return cost;
}

TEST(Rent, IsPaidForItsLeastTime) {
  EXPECT_DOUBLE_EQ(money_for(0.25, 2, 1, 0, 0), 2);
  EXPECT_DOUBLE_EQ(money_for(3, 2, 1, 0, 0), 6);
  EXPECT_DOUBLE_EQ(money_for(3, 0, 0, 0.5, 0.25), 1.75) << "owned: value lost and energy";
}

TEST(Rent, NobodyCanTellWhatIsCheaperWhereIntervalsOverlap) {
  EXPECT_EQ(cheaper(run({1, 2, 3}), run({4, 5, 6})), Verdict::own);
  EXPECT_EQ(cheaper(run({4, 5, 6}), run({1, 2, 3})), Verdict::offer);
  EXPECT_EQ(cheaper(run({1, 2, 4.5}), run({4, 5, 6})), Verdict::cannot_tell);
}

TEST(Rent, BuyingPaysAfterSoManyRuns) {
  RunCost own = run({1, 1, 1});
  own.purchase = 3000;
  own.energy_money = 2;
  EXPECT_DOUBLE_EQ(*break_even_runs(own, run({12, 12, 12})), 300) << "10 are saved in each run";
  EXPECT_FALSE(break_even_runs(own, run({1, 1, 1}))) << "rent is less than the energy";
  own.purchase = 0;
  EXPECT_FALSE(break_even_runs(own, run({12, 12, 12}))) << "nothing is bought";
}

}  // namespace
}  // namespace regatta::optimize
