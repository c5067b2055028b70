#include "train/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/files.h"
#include "support/error_text.h"
#include "support/file_size_limit.h"
#include "support/small_run.h"
#include "support/temporary_folder.h"
#include "train/checkpoint.h"
#include "train/weights.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A run of the zoo, which run.json tells by its name.
TrainJob zoo_job() {
  JobOptions options;
  options.model = "tiny";
  options.data = "synth:1x8x8/3@20";
  options.batch = 6;
  options.workers = 2;
  options.plan.chunks = std::vector<std::int64_t>{2, 4};
  options.plan.segments = "op";
  return make_job(options);
}

std::vector<Json> lines_of(const fs::path& file) {
  std::vector<Json> lines;
  std::istringstream text(read_file(file));
  for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
  return lines;
}

TEST(RunJson, TellsRecipePlanAndMachine) {
  const TemporaryFolder folder;
  const TrainJob job = zoo_job();
  write_run_json(folder.path(), job, 12);
  const Json json = read_json(folder.path() / "run.json");
  EXPECT_EQ(json.at("recipe"), job.recipe.to_json());
  EXPECT_EQ(json.at("plan"), to_json(job.plan, job.graph));
  for (const char* key : {"host", "cpu", "cpus"}) EXPECT_TRUE(json.at("machine").contains(key));
  EXPECT_TRUE(json.contains("regatta"));
}

TEST(RunJson, GivesTheRunBack) {
  const TemporaryFolder folder;
  const TrainJob job = zoo_job();
  write_run_json(folder.path(), job, 12);
  const RunRecord run = read_run_json(folder.path());
  EXPECT_EQ(run.job.recipe.to_json(), job.recipe.to_json());
  EXPECT_EQ(to_json(run.job.plan, run.job.graph), to_json(job.plan, job.graph));
  EXPECT_EQ(run.test, "synth:1x8x8/3@20");
  EXPECT_EQ(run.last_step, 12);
}

TEST(RunJson, WhatIsWrongWithItIsNamed) {
  const TemporaryFolder folder;
  write_run_json(folder.path(), zoo_job(), 12);
  const Json whole = read_json(folder.path() / "run.json");
  const auto complaint = [&](const auto& damage) {
    Json json = whole;
    damage(json);
    write_file(folder.path() / "run.json", json.dump());
    return error_text([&] { read_run_json(folder.path()); });
  };
  EXPECT_THAT(complaint([](Json& json) { json.erase("plan"); }),
              AllOf(HasSubstr("run.json'"), HasSubstr("it has no plan")));
  EXPECT_THAT(complaint([](Json& json) { json["recipe"].erase("seed"); }), HasSubstr("'seed'"));
  EXPECT_THAT(complaint([](Json& json) { json["recipe"]["seed"] = 5; }),
              HasSubstr("another recipe"));
  EXPECT_THAT(complaint([](Json& json) { json["recipe"]["model"] = "tinny"; }),
              HasSubstr("did you mean 'tiny'?"));
  EXPECT_THAT(complaint([](Json& json) { json["last_step"] = "many"; }), HasSubstr("run.json'"));
  EXPECT_THAT(complaint([](Json& json) { json = Json::array(); }), HasSubstr("it has no recipe"));
}

class Metrics : public testing::Test {
 protected:
  Metrics() { initialise_weights(executor, 1); }

  void train_to(std::int64_t first, std::int64_t last) {
    RunFolder run(folder.path(), executor, {.step = first});
    TrainGoal goal;
    goal.from.step = first;
    goal.last_step = last;
    train(executor, job.recipe, job.data, job.test, goal, run);
  }
  std::vector<std::int64_t> steps_written() const {
    std::vector<std::int64_t> steps;
    for (const Json& line : lines_of(folder.path() / "metrics.jsonl"))
      if (line.contains("step")) steps.push_back(line["step"]);
    return steps;
  }

  const TrainJob job = small_job();
  Executor executor{job.graph, job.plan, job.exec_options(true)};
  const TemporaryFolder folder;
};

TEST_F(Metrics, AreOneLineForEachStepAndEpoch) {
  train_to(0, 4);  // three steps make an epoch
  const std::vector<Json> lines = lines_of(folder.path() / "metrics.jsonl");
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(steps_written(), (std::vector<std::int64_t>{1, 2, 3, 4}));
  for (const std::size_t step : {0, 1, 2, 4})
    for (const char* key : {"step", "loss", "lr", "images_per_s"})
      EXPECT_TRUE(lines[step].at(key).is_number()) << key;
  for (const std::size_t epoch : {3, 5})
    for (const char* key : {"epoch", "train_loss", "train_accuracy", "test_loss", "test_accuracy"})
      EXPECT_TRUE(lines[epoch].at(key).is_number()) << key;
}

TEST_F(Metrics, OfStepsThatComeAgainAreDropped) {
  train_to(0, 3);
  // A crash after the checkpoint of step 3: a step on, and half a line.
  std::ofstream(folder.path() / "metrics.jsonl", std::ios::app)
      << R"({"step":4,"loss":9.0,"images_per_s":1.0})"
      << "\n{\"step\":5,\"lo";
  train_to(3, 5);
  EXPECT_EQ(steps_written(), (std::vector<std::int64_t>{1, 2, 3, 4, 5}));
  for (const Json& line : lines_of(folder.path() / "metrics.jsonl"))
    EXPECT_NE(line.value("loss", 0.0), 9.0);
}

StepRecord made_up_step(std::int64_t step, double loss = 1) {
  return {.step = step, .loss = loss, .samples = 4, .correct = 1, .duration = Seconds(0.001)};
}

TEST_F(Metrics, OfMillionsOfStepsStaySmallAndKeepTheSpikesOfTheLoss) {
  constexpr std::int64_t all = 3'000'000, spike = 2'345'678;
  {
    RunFolder run(folder.path(), executor, {});
    for (std::int64_t step = 1; step <= all; ++step)
      run.on_step(made_up_step(step, step == spike ? 99 : 1));
    run.on_rest({.step = all});
  }
  EXPECT_LT(fs::file_size(folder.path() / "metrics.jsonl"), 20'000'000u);
  for (const auto& entry : fs::directory_iterator(folder.path()))
    if (entry.path().filename().string().starts_with("events.")) {
      EXPECT_LT(entry.file_size(), 1'000'000u);
    }
  std::int64_t told = 0;
  double largest = 0;
  for (const Json& line : lines_of(folder.path() / "metrics.jsonl")) {
    const trace::StepStretch stretch = trace::stretch_of(line).value();
    told += stretch.steps;
    ASSERT_EQ(stretch.step, told);  // no step is missing or told of twice
    largest = std::max(largest, stretch.loss_max);
  }
  EXPECT_EQ(told, all);
  EXPECT_EQ(largest, 99);
}

TEST_F(Metrics, NoLineTellsOfStepsBeforeAndAfterACheckpoint) {
  constexpr std::int64_t saved = 50'003;  // lines are of four steps there
  {
    RunFolder run(folder.path(), executor, {});
    for (std::int64_t step = 1; step <= saved; ++step) run.on_step(made_up_step(step));
    run.on_rest({.step = saved});
    for (std::int64_t step = saved + 1; step <= saved + 50; ++step)
      run.on_step(made_up_step(step, 9));
  }
  const RunFolder again(folder.path(), executor, {.step = saved});
  std::int64_t told = 0;
  for (const Json& line : lines_of(folder.path() / "metrics.jsonl")) {
    told += line.value("steps", 1);
    EXPECT_EQ(line["loss"], 1);
  }
  EXPECT_EQ(told, saved);
}

// Epochs of a data set that is one batch.
TEST_F(Metrics, OfVeryManyEpochsStaySmall) {
  constexpr std::int64_t all = 120'000;
  {
    RunFolder run(folder.path(), executor, {});
    for (EpochRecord record; record.epoch < all;) {
      ++record.epoch;
      record.train_loss = record.epoch == 777 ? 99 : 1;
      run.on_epoch(record);
    }
    run.on_rest({.step = all});
  }
  const std::vector<Json> lines = lines_of(folder.path() / "metrics.jsonl");
  EXPECT_LT(lines.size(), 65'000u);
  EXPECT_TRUE(std::ranges::any_of(lines, [](const Json& each) { return each["epoch"] == 777; }));
  EXPECT_EQ(lines.back().at("epoch"), all);
  for (const auto& entry : fs::directory_iterator(folder.path()))
    if (entry.path().filename().string().starts_with("events.")) {
      EXPECT_LT(entry.file_size(), 2'000'000u);
    }
}

TEST(EventInterval, GrowsWithTheRunSoThatCurvesStaySmall) {
  int points = 0;
  for (Seconds time{0}; time < std::chrono::hours(24); time += event_interval(time)) ++points;
  EXPECT_LT(points, 50'000);
  EXPECT_EQ(event_interval(Seconds(60)), Seconds(0.2));
}

TEST_F(Metrics, AreWrittenLateRatherThanLostWhenTheDiskIsFull) {
  LineFile lines(folder.path() / "lines");
  lines.add("first");
  {
    const FileSizeLimit full(3);
    lines.add("second");
    EXPECT_THAT(error_text([&] { lines.sync(); }),
                HasSubstr("cannot write '" + (folder.path() / "lines").string() + "'"));
  }
  lines.add("third");
  lines.sync();
  EXPECT_EQ(read_file(folder.path() / "lines"), "first\nsecond\nthird\n");
}

TEST_F(Metrics, AFullDiskEndsTheRunAtItsNextRestAndNamesTheCheckpointBefore) {
  train_to(0, 3);
  RunFolder run(folder.path(), executor, {.step = 3});
  run.on_step({.step = 4, .loss = 1, .samples = 4, .correct = 1, .duration = Seconds(1)});
  const std::string said = [&] {
    const FileSizeLimit full(10);
    return error_text([&] { run.on_rest({.step = 4}); });
  }();
  EXPECT_THAT(said, AllOf(HasSubstr("cannot write '"), HasSubstr("checkpoints/step-3, go on"),
                          HasSubstr("regatta train --resume " + folder.path().string())));
}

TEST_F(Metrics, AFolderThatVanishedIsNamed) {
  const fs::path gone = folder.path() / "gone";
  fs::create_directory(gone);
  RunFolder run(gone, executor, {});
  fs::remove_all(gone);
  run.on_step({.step = 1, .loss = 1, .samples = 4, .correct = 1, .duration = Seconds(1)});
  EXPECT_THAT(error_text([&] { run.on_rest({.step = 1}); }),
              AllOf(HasSubstr("cannot create '" + gone.string()), HasSubstr("no checkpoint yet")));
}

TEST_F(Metrics, SavesAsOftenAsAskedAndKnowsTheBest) {
  RunFolder run(folder.path(), executor, {}, CheckpointPolicy::parse("2", 1));
  EXPECT_FALSE(run.wants_rest(1));
  EXPECT_TRUE(run.wants_rest(2));
  EpochRecord epoch;
  for (const double accuracy : {0.5, 0.75, 0.25}) {
    epoch.epoch += 1;
    epoch.test_accuracy = accuracy;
    epoch.test_loss = 1;
    run.on_epoch(epoch);
    run.on_rest({.step = epoch.epoch});
  }
  EXPECT_EQ(best_score(folder.path())->test_accuracy, 0.75);
  EXPECT_EQ(read_json(best_checkpoint(folder.path()) / "state.json").at("step"), 2);
  EXPECT_EQ(latest_checkpoint(folder.path()).filename(), "step-3");
}

TEST(RunLock, IsHeldByOneAtATime) {
  const TemporaryFolder folder;
  {
    const RunLock lock(folder.path());
    EXPECT_THAT(error_text([&] { RunLock again(folder.path()); }),
                HasSubstr("is being trained by another process"));
  }
  const RunLock free(folder.path());
}

TEST(NewRunFolder, TakesOneThatHoldsOnlyWhatACrashLeft) {
  const TemporaryFolder folder;
  folder.file("run.json.part-12", "{");
  NewRunFolder run(folder.path());
  run.keep();
}

TEST(NewRunFolder, RefusesAFolderThatHoldsSomething) {
  const TemporaryFolder folder;
  folder.file("notes.txt", "mine");
  EXPECT_THAT(error_text([&] { NewRunFolder run(folder.path()); }),
              AllOf(HasSubstr(folder.path().string()), HasSubstr("already holds something")));
  EXPECT_EQ(read_file(folder.path() / "notes.txt"), "mine");
}

TEST(NewRunFolder, RefusesANameThatIsTaken) {
  const TemporaryFolder folder;
  const fs::path file = folder.file("run", "");
  EXPECT_THAT(error_text([&] { NewRunFolder run(file); }), HasSubstr("a file has that name"));
  EXPECT_THAT(error_text([&] { NewRunFolder run(file / "inside"); }), HasSubstr("cannot create"));
}

TEST(NewRunFolder, GoesAwayWithItsNewParentsUnlessItIsKept) {
  const TemporaryFolder folder;
  fs::create_directories(folder.path() / "old");
  const fs::path path = folder.path() / "old" / "new" / "run";
  {
    const NewRunFolder run(path);
    write_file(path / "run.json", "{}");
  }
  EXPECT_TRUE(fs::is_empty(folder.path() / "old"));
  { NewRunFolder(path).keep(); }
  EXPECT_TRUE(fs::is_directory(path));
}

// Of two runs that begin at the same time, the one that gives up must not remove the other's files.
TEST(NewRunFolder, BelongsToTheFirstOfTwo) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "run";
  NewRunFolder first(path);
  EXPECT_THAT(error_text([&] { NewRunFolder second(path); }),
              HasSubstr("is being trained by another process"));
  EXPECT_TRUE(fs::is_directory(path));
  first.keep();
}

TEST(NewRunFolder, AnEmptyFolderThatWasThereStays) {
  const TemporaryFolder folder;
  { const NewRunFolder run(folder.path()); }
  EXPECT_TRUE(fs::is_directory(folder.path()));
}

TEST(RunFolder, AnEndThatCannotBeAppendedToTheMetricsIsAnError) {
  const TemporaryFolder folder;
  folder.file("run.json", "{}");
  fs::create_symlink("/dev/full", folder.path() / "metrics.jsonl");
  EXPECT_THAT(error_text([&] {
                write_end(folder.path(), {}, Json{{"cpu", 1}});
              }),
              AllOf(HasSubstr("cannot write '"), HasSubstr("metrics.jsonl': No space left")));
}

}  // namespace
}  // namespace regatta
