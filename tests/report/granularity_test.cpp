#include "report/granularity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace regatta {
namespace {

using testing::HasSubstr;

GranularityRun run_of(std::string name, double seconds, double predicted = 0) {
  GranularityRun run;
  run.name = std::move(name);
  run.rounds = {seconds, 10 * seconds, seconds};  // one disturbed
  run.predicted = predicted;
  return run;
}

GranularityCell cell_of(double automatic, double predicted, double fixed, double one_worker) {
  GranularityCell cell;
  cell.model = "tiny";
  cell.input = "3x28x28";
  cell.batch = 14;
  cell.automatic = run_of("step x 2, 2 workers", automatic, predicted);
  cell.one_worker = run_of("step x 1", one_worker);
  cell.fixed = {run_of("op x 1", 3 * fixed), run_of("step x 2", fixed)};
  cell.fixed.front().dropped = true;
  return cell;
}

TEST(GranularityReport, TheBestFixedChoiceIsTheFastestByItsMedian) {
  const GranularityCell cell = cell_of(1.02, 1, 1, 2);
  EXPECT_EQ(cell.best_fixed()->name, "step x 2");
  EXPECT_NEAR(cell.ratio(), 1.02, 1e-9);
  EXPECT_NEAR(cell.one_worker_ratio(), 0.51, 1e-9);
}

// Twelve equals whose rounds differ by a tenth: the least of their medians is 5% less than what any
// of them takes, and so is what it takes at other times.
TEST(GranularityReport, TheBestFixedChoiceDoesNotOweItToLuck) {
  std::mt19937 chance(7);
  const auto rounds = [&](std::size_t count) {
    GranularityRun run;
    for (std::size_t i = 0; i < count; ++i)
      run.rounds.push_back(1 + 0.2 * static_cast<double>(chance()) / std::mt19937::max());
    return run;
  };
  double ratio = 0, by_the_least = 0;
  constexpr int cells = 200;
  for (int i = 0; i < cells; ++i) {
    GranularityCell cell;
    cell.automatic = rounds(12);
    for (int k = 0; k < 12; ++k) cell.fixed.push_back(rounds(6));
    ratio += cell.ratio() / cells;
    by_the_least += cell.automatic.step_seconds() / cell.best_fixed()->step_seconds() / cells;
  }
  EXPECT_NEAR(ratio, 1, 0.01);
  EXPECT_GT(by_the_least, 1.04);
}

TEST(GranularityReport, SumsUpOverTheCellsThatWereRun) {
  GranularityCell skipped;
  skipped.not_run = "too slow";
  const GranularitySummary all =
      summarise({cell_of(1, 1, 1, 2), cell_of(1.2, 1.08, 1, 1), skipped});
  EXPECT_EQ(all.cells, 2u);
  EXPECT_NEAR(all.within_5_percent, 0.5, 1e-9);
  EXPECT_NEAR(all.worst_ratio, 1.2, 1e-9);
  EXPECT_EQ(all.slower_than_one_worker, 1u);
  EXPECT_NEAR(all.error_95, 0.1, 0.006);
}

TEST(GranularityReport, SaysWhatWasLeftOut) {
  GranularityCell skipped;
  skipped.model = "resnet18";
  skipped.not_run = "a step takes 3 s";
  const std::string text = granularity_table({cell_of(1, 1, 1, 2), skipped});
  EXPECT_THAT(text, HasSubstr("far behind: op x 1"));
  EXPECT_THAT(text, HasSubstr("not run: a step takes 3 s"));
  EXPECT_THAT(text, HasSubstr("1 cells: automatic within 5%"));
}

TEST(GranularityReport, DataHasEveryMeasurement) {
  const std::vector<GranularityCell> cells{cell_of(1, 1, 1, 2)};
  EXPECT_THAT(granularity_csv(cells), HasSubstr("tiny,3x28x28,14,\"fixed op x 1\",3,0,0,1\n"));
  const Json json = granularity_json(cells);
  EXPECT_EQ(json["cells"][0]["fixed"].size(), 2u);
  EXPECT_EQ(json["summary"]["cells"], 1);
}

}  // namespace
}  // namespace regatta
