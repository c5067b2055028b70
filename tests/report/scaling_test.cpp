#include "report/scaling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

double amdahl(double serial, double workers) { return 1 / (serial + (1 - serial) / workers); }

// Runs of an imaginary machine that obeys Amdahl's law, 10 images a step, 3 slow steps at first.
ScalingCell cell(int workers, double serial, double noise, std::size_t repeats) {
  ScalingCell made{"eager", "1x28x28", 10, workers, {}, {}, {}};
  for (std::size_t r = 0; r < repeats; ++r) {
    ScalingSample sample{{}, 10};
    for (std::uint64_t i = 0; i < 100; ++i) {
      const double scatter = random_normal(5, static_cast<std::uint64_t>(workers), r * 100 + i);
      sample.step_seconds.push_back(0.1 / amdahl(serial, workers) * std::exp(noise * scatter) *
                                    (i < 3 ? 5 : 1));
    }
    made.samples.push_back(sample);
  }
  return made;
}

TEST(Scaling, OfAPerfectMachineIsPerfect) {
  const ScalingResult result =
      analyse_scaling("tiny", {cell(4, 0, 0, 3), cell(1, 0, 0, 3), cell(2, 0, 0, 3)});
  ASSERT_EQ(result.series.size(), 1u);
  const auto& rows = result.series[0].rows;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(rows[i].cell.workers, 1 << i);
    EXPECT_NEAR(rows[i].images_per_s, 100 << i, 1e-6);
    EXPECT_NEAR(rows[i].median_images_per_s, 100 << i, 1e-6);
    EXPECT_NEAR(rows[i].speedup, 1 << i, 1e-9);
    EXPECT_NEAR(rows[i].efficiency, 100, 1e-9);
    EXPECT_EQ(rows[i].warmup_steps, 3);
    EXPECT_NEAR(rows[i].warmup_seconds, 1.5 / (1 << i), 1e-9);
  }
  EXPECT_NEAR(result.series[0].amdahl->serial_fraction, 0, 1e-9);
}

TEST(Scaling, AmdahlsFractionComesBackWithAnIntervalThatHoldsIt) {
  const ScalingResult result =
      analyse_scaling("tiny", {cell(1, 0.1, 0.05, 3), cell(2, 0.1, 0.05, 3), cell(4, 0.1, 0.05, 3),
                               cell(8, 0.1, 0.05, 3), cell(16, 0.1, 0.05, 3)});
  const AmdahlFit fit = *result.series[0].amdahl;
  EXPECT_NEAR(fit.serial_fraction, 0.1, 0.02);
  EXPECT_LE(fit.interval.low, 0.1);
  EXPECT_GE(fit.interval.high, 0.1);
  EXPECT_LT(fit.interval.high - fit.interval.low, 0.05);
}

// Three runs of a disturbed machine as they once came: their mean lies far from each of them, and
// Student's interval of it begins below zero.
TEST(Scaling, ADisturbedRunMovesNeitherTheRateNorItsIntervalOutOfTheRuns) {
  ScalingCell disturbed = cell(2, 0, 0, 3);
  for (double& seconds : disturbed.samples[1].step_seconds) seconds *= 60;
  disturbed.samples[0].taken_by_others = 0.0;
  disturbed.samples[1].taken_by_others = 0.9;
  disturbed.samples[2].taken_by_others = 0.0;
  const ScalingResult result = analyse_scaling("tiny", {cell(1, 0, 0, 3), disturbed});
  const ScalingRow& row = result.series[0].rows[1];
  EXPECT_NEAR(row.images_per_s, 200, 1e-6);
  EXPECT_NEAR(row.interval.low, 200.0 / 60, 1e-6);
  EXPECT_NEAR(row.interval.high, 200, 1e-6);
  EXPECT_NEAR(result.series[0].amdahl->serial_fraction, 0, 1e-9);
  EXPECT_THAT(scaling_table(result),
              HasSubstr("disturbed: others took 30% of the workers' CPU time"));
  EXPECT_NEAR(scaling_json(result).at("rows")[1].at("taken_by_others").get<double>(), 0.3, 1e-9);
}

// A step that stalls counts in a run's rate for as long as it took.
TEST(Scaling, ThroughputIsImagesOverTime) {
  ScalingSample sample{std::vector<double>(100, 0.01), 10};
  for (std::size_t i = 9; i < 100; i += 10) sample.step_seconds[i] = 0.11;
  EXPECT_NEAR(throughput_of(sample), 1000 / 2.0, 50);
}

// Few runs or many: the interval is of the rate that stands beside it, slow steps and all.
TEST(Scaling, IntervalsHoldTheirRates) {
  for (const std::size_t repeats : {1, 2, 3, 5}) {
    const ScalingResult result = analyse_scaling("tiny", {cell(1, 0, 0.6, repeats)});
    const ScalingRow& row = result.series[0].rows[0];
    EXPECT_LE(row.interval.low, row.images_per_s) << repeats;
    EXPECT_GE(row.interval.high, row.images_per_s) << repeats;
    EXPECT_EQ(row.repeats.size(), repeats);
  }
}

TEST(Scaling, OneWorkerAloneHasNoFit) {
  const ScalingResult result = analyse_scaling("tiny", {cell(1, 0, 0, 1)});
  EXPECT_FALSE(result.series[0].amdahl);
  EXPECT_EQ(result.series[0].rows[0].efficiency, 100);
  EXPECT_TRUE(scaling_json(result).at("amdahl_serial_fraction").is_null());
}

TEST(Scaling, UnlikeGroupsAreMeasuredAgainstTheirSum) {
  ScalingCell mixed = cell(2, 0, 0, 1);
  mixed.groups_alone = {50, 200};
  const ScalingResult result = analyse_scaling("tiny", {mixed});
  const ScalingRow& row = result.series[0].rows[0];
  EXPECT_EQ(*row.ideal, 250);
  EXPECT_NEAR(*row.ideal_efficiency, 80, 1e-6);
}

TEST(Scaling, OtherBatchesAreOtherSeries) {
  ScalingCell larger = cell(1, 0, 0, 1);
  larger.batch = 20;
  const ScalingResult result = analyse_scaling("tiny", {cell(1, 0, 0, 1), larger});
  EXPECT_EQ(result.series.size(), 2u);
}

TEST(Scaling, TablesSayWhatJsonSays) {
  const ScalingResult result = analyse_scaling("tiny", {cell(1, 0.1, 0, 3), cell(4, 0.1, 0, 3)});
  const Json json = scaling_json(result);
  EXPECT_EQ(json.at("rows").size(), 2u);
  for (const char* key : {"workers", "images_per_s", "speedup", "efficiency", "warmup_steps"})
    EXPECT_TRUE(json.at("rows")[1].contains(key)) << key;
  EXPECT_NEAR(json.at("amdahl_serial_fraction").get<double>(), 0.1, 1e-6);
  EXPECT_THAT(scaling_table(result), HasSubstr("tiny, 1x28x28, batch 10, eager"));
  EXPECT_THAT(scaling_table(result), HasSubstr("Amdahl: 10.0% serial"));
  const std::string csv = scaling_csv(result);
  EXPECT_EQ(std::ranges::count(csv, '\n'), 3);
  std::string header = csv.substr(0, csv.find('\n')), row = csv.substr(csv.find('\n') + 1);
  row = row.substr(0, row.find('\n'));
  EXPECT_EQ(std::ranges::count(header, ','), std::ranges::count(row, ','));
}

TEST(Scaling, EveryRoundVisitsEveryCellInAnOrderOfItsOwn) {
  const std::vector<Turn> turns = interleaved(6, 4, 1);
  ASSERT_EQ(turns.size(), 24u);
  std::vector<std::vector<std::size_t>> rounds(4);
  for (std::size_t i = 0; i < turns.size(); ++i) {
    EXPECT_EQ(turns[i].repeat, i / 6);
    rounds[i / 6].push_back(turns[i].cell);
  }
  EXPECT_NE(rounds[0], rounds[1]);
  for (auto& round : rounds) {
    std::ranges::sort(round);
    EXPECT_EQ(round, (std::vector<std::size_t>{0, 1, 2, 3, 4, 5}));
  }
}

}  // namespace
}  // namespace regatta
