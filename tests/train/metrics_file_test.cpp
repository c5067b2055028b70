#include "train/metrics_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/files.h"
#include "support/temporary_folder.h"
#include "trace/step_curve.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;

std::vector<Json> lines_of(const fs::path& folder) {
  std::vector<Json> lines;
  std::istringstream text(read_file(folder / metrics_name));
  for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
  return lines;
}

std::string step_line(std::int64_t step, double loss) {
  return to_json(trace::StepStretch{.step = step,
                                    .loss = loss,
                                    .loss_min = loss,
                                    .loss_max = loss,
                                    .images_per_s = 10})
      .dump();
}

std::string epoch_line(std::int64_t epoch, double loss) {
  return Json{{"epoch", epoch}, {"train_loss", 1.0}, {"test_loss", loss}}.dump();
}

// Steps that no line tells of twice, up to `last`.
void expect_all_steps(const std::vector<Json>& lines, std::int64_t last) {
  std::int64_t told = 0;
  for (const Json& line : lines)
    if (const auto stretch = trace::stretch_of(line)) {
      told += stretch->steps;
      ASSERT_EQ(stretch->step, told);
    }
  EXPECT_EQ(told, last);
}

constexpr std::int64_t steps = 40'000, spike = 12'345, best_epoch = 3'000;
constexpr std::size_t most = 4'000;

// A run that saves after each step and keeps two checkpoints. Five steps make an epoch.
void write_run(const fs::path& folder) {
  MetricsFile file(folder, {}, most);
  for (std::int64_t step = 1; step <= steps; ++step) {
    file.add(step_line(step, step == spike ? 99 : 1));
    if (step % 5 == 0) file.add(epoch_line(step / 5, step / 5 == best_epoch ? 0.25 : 0.5));
    file.condense(step - 1);
    if (step == steps / 2) {
      EXPECT_LE(lines_of(folder).size(), most);
    }
  }
}

TEST(MetricsFile, StaysBoundedHoweverOftenTheRunSaves) {
  const TemporaryFolder folder;
  write_run(folder.path());
  const std::vector<Json> lines = lines_of(folder.path());
  EXPECT_LE(lines.size(), most);
  expect_all_steps(lines, steps);
  bool spike_is_told = false, best_is_told = false;
  std::int64_t last_epoch = 0;
  for (const Json& line : lines) {
    if (const auto stretch = trace::stretch_of(line))
      spike_is_told |= stretch->loss_max == 99 && stretch->step >= spike &&
                       stretch->step - stretch->steps < spike;
    if (!line.contains("epoch")) continue;
    EXPECT_GT(line["epoch"], last_epoch);
    last_epoch = line["epoch"];
    best_is_told |= line == Json::parse(epoch_line(best_epoch, 0.25));
  }
  EXPECT_TRUE(spike_is_told);
  EXPECT_TRUE(best_is_told);
  // No part of the run is told less finely than others.
  EXPECT_GT(std::ranges::count_if(
                lines, [](const Json& each) { return each.value("step", steps) < steps / 4; }),
            100);
  EXPECT_EQ(last_epoch, steps / 5);
}

TEST(MetricsFile, ThatWasCondensedEndsAtTheCheckpointARunGoesOnFrom) {
  for (const std::int64_t from : {steps, steps - 1}) {
    const TemporaryFolder folder;
    write_run(folder.path());
    const std::int64_t seen = from % 5;  // samples of the epoch under way
    const MetricsFile again(folder.path(), {.step = from, .seen = seen}, most);
    const std::vector<Json> lines = lines_of(folder.path());
    expect_all_steps(lines, from);
    EXPECT_EQ(lines.back().contains("epoch"), seen == 0);
  }
}

TEST(MetricsFile, JoinsNothingAfterTheOldestCheckpoint) {
  const TemporaryFolder folder;
  MetricsFile file(folder.path(), {}, most);
  constexpr std::int64_t oldest = 101;
  for (std::int64_t step = 1; step <= std::int64_t{2 * most}; ++step) file.add(step_line(step, 1));
  file.condense(oldest);
  bool ends_there = false;
  for (const Json& line : lines_of(folder.path())) {
    ends_there |= line["step"] == oldest;
    if (line["step"] > oldest) {
      EXPECT_FALSE(line.contains("steps"));
    }
  }
  EXPECT_TRUE(ends_there);
}

TEST(MetricsFile, OfWhichALineIsDamagedKeepsTheOthers) {
  const TemporaryFolder folder;
  {
    MetricsFile file(folder.path(), {}, most);
    for (std::int64_t step = 1; step <= 6; ++step)
      file.add(step == 3 ? R"({"step":3,"lo)" : step_line(step, 1));
  }
  const MetricsFile again(folder.path(), {.step = 5}, most);
  std::vector<std::int64_t> kept;
  for (const Json& line : lines_of(folder.path())) kept.push_back(line["step"]);
  EXPECT_EQ(kept, (std::vector<std::int64_t>{1, 2, 4, 5}));
}

TEST(MetricsFile, KeepsOtherLines) {
  const TemporaryFolder folder;
  MetricsFile file(folder.path(), {}, most);
  const Json energy{{"energy", {{"joules", 5}}}};
  file.add(energy.dump());
  for (std::int64_t step = 1; step <= std::int64_t{most}; ++step) file.add(step_line(step, 1));
  file.condense(most);
  const std::vector<Json> lines = lines_of(folder.path());
  EXPECT_LT(lines.size(), most);
  EXPECT_EQ(lines.front(), energy);
  expect_all_steps(lines, most);
}

}  // namespace
}  // namespace regatta
