#include "report/fidelity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace regatta {
namespace {

using testing::HasSubstr;
using testing::Not;

FidelityCell cell(const std::string& model, double measured, double simulated) {
  FidelityCell made;
  made.model = model;
  made.measured = {measured};
  made.simulated = simulated;
  return made;
}

TEST(Fidelity, TellsTheMedianAndTheWorstError) {
  const FidelitySummary summary =
      summarise({cell("a", 1, 1.1), cell("a", 2, 2.0), cell("b", 1, 0.8)});
  EXPECT_NEAR(summary.median_error, 0.1, 1e-12);
  EXPECT_NEAR(summary.worst_error, 0.2, 1e-12);
}

TEST(Fidelity, TauCountsPairsThatDifferEnoughAndThoseOfOneModelApart) {
  // 1.00 and 1.02 are too near each other; b has no pair of its own model, and is misjudged
  // against all others.
  const FidelitySummary summary =
      summarise({cell("a", 1.00, 2), cell("a", 1.02, 1), cell("a", 1.5, 3), cell("a", 2, 2.5),
                 cell("b", 9, 1)});
  EXPECT_EQ(summary.pairs_within, 5u);
  EXPECT_NEAR(summary.tau_within, 3.0 / 5, 1e-12);
  EXPECT_EQ(summary.pairs, 9u);
  EXPECT_NEAR(summary.tau, -1.0 / 9, 1e-12);
}

TEST(Fidelity, CellsThatWereNotRunAreSaidSoAndCountForNothing) {
  FidelityCell late = cell("a", 1, 1);
  late.measured.clear();
  late.not_run = "no time";
  const std::vector<FidelityCell> cells{cell("a", 1, 1.1), late};
  EXPECT_EQ(summarise(cells).cells, 1u);
  EXPECT_THAT(fidelity_table(cells), HasSubstr("not run: no time"));
  EXPECT_THAT(placement_table(cells), HasSubstr("not run: no time"));
  EXPECT_EQ(fidelity_json(cells)["cells"][1]["not_run"], "no time");
}

TEST(Fidelity, TheCsvHasALineForEachMeasurement) {
  FidelityCell two = cell("a", 1, 1.1);
  two.measured.push_back(1.2);
  const std::string text = fidelity_csv({two});
  EXPECT_EQ(std::ranges::count(text, '\n'), 3);
}

TEST(Fidelity, CellsThatWereLookedAtTellTheirPhases) {
  FidelityCell seen = cell("seen", 1, 1.1);
  EXPECT_EQ(fidelity_reasons({seen}), "");
  seen.kernels = {0.9, 0.8};
  seen.phases = {{"forward", {0.6, 0.5}}, {"reduce", {0.001, 0.001}}};
  const std::string text = fidelity_reasons({cell("other", 1, 1), seen});
  EXPECT_THAT(text, HasSubstr("step 1100 of 1000,"));
  EXPECT_THAT(text, HasSubstr("forward 500 of 600"));
  EXPECT_THAT(text, Not(HasSubstr("reduce")));  // next to nothing
  EXPECT_THAT(text, Not(HasSubstr("other")));
  const Json json = fidelity_json({seen});
  EXPECT_EQ(json["cells"][0]["phases"]["reduce"]["measured_s"], 0.001);
  EXPECT_EQ(json["cells"][0]["simulated_kernels_s"], 0.8);
}

TEST(Fidelity, SpreadIsBetweenRounds) {
  FidelityCell three = cell("a", 1, 1);
  three.measured = {1.1, 1.0, 1.2};
  EXPECT_NEAR(three.spread(), 0.2 / 1.1, 1e-12);
}

}  // namespace
}  // namespace regatta
