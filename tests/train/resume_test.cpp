// A run that is stopped and resumed ends with the bits of one that was not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "base/files.h"
#include "base/json.h"
#include "support/program_process.h"
#include "support/program_run.h"
#include "support/small_run.h"
#include "support/temporary_folder.h"
#include "train/checkpoint.h"
#include "train/weights.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

Arguments operator+(Arguments left, const Arguments& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

class Resume : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return (folder.path() / name).string(); }

  std::string model_at(const std::string& name, std::int64_t step) const {
    return read_file(folder.path() / name / "checkpoints" / ("step-" + std::to_string(step)) /
                     "model.safetensors");
  }

  // All lines of metrics.jsonl, without what the clock says.
  std::vector<Json> metrics_of(const std::string& name) const {
    std::vector<Json> lines;
    std::istringstream text(read_file(folder.path() / name / "metrics.jsonl"));
    for (std::string line; std::getline(text, line);) {
      lines.push_back(Json::parse(line));
      for (const char* clock : {"images_per_s", "loader_share", "data_wait", "loading"})
        lines.back().erase(clock);
      if (lines.back().contains("energy")) lines.pop_back();  // one for each time it went on
    }
    return lines;
  }

  static void succeed(const Arguments& arguments) {
    const ProgramRun run = run_regatta(arguments);
    ASSERT_EQ(run.code, 0) << run.err;
  }

  const TemporaryFolder folder;
};

TEST_F(Resume, ThreeStepsAndThreeMoreAreSix) {
  // Five steps make an epoch: the run stops within the first and goes on into the second.
  const Arguments train{"train",   "--model", "tiny",           "--data", "synth:1x12x12/3@40",
                        "--batch", "8",       "--deterministic"};
  succeed(train + Arguments{"--steps", "6", "--out", at("straight")});
  succeed(train + Arguments{"--steps", "3", "--out", at("stopped")});
  succeed({"train", "--resume", at("stopped"), "--steps", "6"});
  EXPECT_EQ(model_at("stopped", 6), model_at("straight", 6));
  EXPECT_EQ(metrics_of("stopped"), metrics_of("straight"));
}

TEST_F(Resume, OnOtherWorkersAndAnotherSchedulerToo) {
  const Arguments train{"train",   "--model", "lenet5", "--data", "synth:1x28x28/10@250",
                        "--batch", "96",      "--test", "none",   "--deterministic"};
  succeed(train + Arguments{"--epochs", "2", "--workers", "1", "--out", at("straight")});
  succeed(train + Arguments{"--steps", "3", "--workers", "1", "--out", at("stopped")});
  succeed({"train", "--resume", at("stopped"), "--epochs", "2", "--workers", "2", "--scheduler",
           "eager"});
  EXPECT_EQ(model_at("stopped", 6), model_at("straight", 6));
}

TEST_F(Resume, AfterAStopWithinAnEpoch) {
  const TrainJob job = small_job();  // three steps make an epoch
  for (const char* name : {"straight", "stopped"}) fs::create_directory(folder.path() / name);
  Executor executor(job.graph, job.plan, job.exec_options(true));
  TrainGoal goal;
  goal.last_step = 6;
  Recorder straight;
  initialise_weights(executor, 1);
  train(executor, job.recipe, job.data, nullptr, goal, straight);
  save_checkpoint(folder.path() / "straight", executor, {.step = 6});

  Recorder stopped;
  stopped.stop_after = 4;
  initialise_weights(executor, 1);
  train(executor, job.recipe, job.data, nullptr, goal, stopped);
  ASSERT_EQ(stopped.rests.back(), 4);
  save_checkpoint(folder.path() / "stopped", executor, {.step = 4});

  initialise_weights(executor, 99);
  goal.from = load_checkpoint(latest_checkpoint(folder.path() / "stopped"), executor);
  Recorder resumed;
  train(executor, job.recipe, job.data, nullptr, goal, resumed);
  save_checkpoint(folder.path() / "stopped", executor, {.step = 6});
  EXPECT_EQ(model_at("stopped", 6), model_at("straight", 6));
  ASSERT_EQ(resumed.steps.size(), 2u);
  for (const std::size_t i : {0, 1}) EXPECT_EQ(resumed.steps[i].loss, straight.steps[4 + i].loss);
}

// Interrupts the run at its test, then reports the epoch.
TEST_F(Resume, AfterAStopDuringAnEpochsTest) {
  const TrainJob job = small_job();
  Executor executor(job.graph, job.plan, job.exec_options(true));
  TrainGoal goal;
  goal.last_step = 3;
  Recorder straight;
  initialise_weights(executor, 1);
  train(executor, job.recipe, job.data, job.test, goal, straight);

  struct StoppedAtTheTest : Recorder {
    bool stop() override { return ++asked > 3; }  // once after each step
  } stopped;
  initialise_weights(executor, 1);
  train(executor, job.recipe, job.data, job.test, goal, stopped);
  EXPECT_TRUE(stopped.epochs.empty());
  ASSERT_EQ(stopped.rests, std::vector<std::int64_t>{3});
  EXPECT_EQ(stopped.states.back().seen, 10);

  goal.from = stopped.states.back();
  Recorder resumed;
  train(executor, job.recipe, job.data, job.test, goal, resumed);
  EXPECT_TRUE(resumed.steps.empty());
  ASSERT_EQ(resumed.epochs.size(), 1u);
  EXPECT_EQ(resumed.epochs[0].train_loss, straight.epochs[0].train_loss);
  EXPECT_EQ(resumed.epochs[0].test_loss, straight.epochs[0].test_loss);
  EXPECT_EQ(resumed.states.back().seen, 0);
}

TEST_F(Resume, AfterCtrlC) {
  const Arguments train{"train",   "--model", "tiny",   "--data", "synth:1x12x12/3@800",
                        "--batch", "8",       "--test", "none",   "--deterministic"};
  ProgramProcess process(train + Arguments{"--epochs", "100000", "--out", at("stopped")},
                         folder.path() / "said");
  using namespace std::chrono_literals;
  for (int i = 0; i < 6000 && !fs::exists(folder.path() / "stopped" / "checkpoints"); ++i)
    std::this_thread::sleep_for(5ms);
  process.signal(SIGINT);
  EXPECT_EQ(process.wait(), 128 + SIGINT);
  EXPECT_THAT(read_file(folder.path() / "said"),
              testing::HasSubstr("go on with: regatta train --resume " + at("stopped")));

  const Json state = read_json(latest_checkpoint(at("stopped")) / "state.json");
  const auto last = state.at("step").get<std::int64_t>() + 3;
  succeed({"train", "--resume", at("stopped"), "--steps", std::to_string(last)});
  succeed(train + Arguments{"--steps", std::to_string(last), "--out", at("straight")});
  EXPECT_EQ(model_at("stopped", last), model_at("straight", last));
}

// A step of many micro-batches takes far longer than it takes to press Ctrl-C again.
TEST_F(Resume, ASecondCtrlCEndsTheProgramAtOnce) {
  const Arguments train{"train",  "--model", "tiny", "--data", "synth:1x12x12/3@4000000",
                        "--test", "none"};
  succeed(train + Arguments{"--batch", "4", "--steps", "1", "--out", at("first")});
  const std::string weights = at("first/checkpoints/step-1/model.safetensors");
  ProgramProcess process(train + Arguments{"--batch", "4", "--accumulate", "1000000", "--init",
                                           weights, "--out", at("run")},
                         folder.path() / "said");
  using namespace std::chrono_literals;
  const auto wait_until = [](const auto& holds) {
    for (int i = 0; i < 6000 && !holds(); ++i) std::this_thread::sleep_for(5ms);
    return holds();
  };
  ASSERT_TRUE(wait_until([&] { return process.catches(SIGHUP); }));  // the last one to be set
  process.signal(SIGINT);
  ASSERT_TRUE(wait_until([&] { return !process.catches(SIGINT); }));
  EXPECT_FALSE(process.ended());
  process.signal(SIGINT);
  EXPECT_EQ(process.wait(), -SIGINT);

  for (const auto& entry : fs::recursive_directory_iterator(at("run")))
    EXPECT_FALSE(is_unfinished(entry.path())) << entry.path();
  const fs::path left = latest_checkpoint(at("run"));
  EXPECT_EQ(left.filename(), "step-0");
  EXPECT_EQ(read_file(left / "model.safetensors"), read_file(weights));
}

TEST_F(Resume, OfWhatIsNoRunIsRefused) {
  fs::create_directory(folder.path() / "empty");
  for (const char* name : {"empty", "gone"}) {
    const ProgramRun run = run_regatta({"train", "--resume", at(name)});
    EXPECT_EQ(run.code, 2);
    EXPECT_THAT(run.err, testing::HasSubstr("'" + at(name) + "' is not the folder of a run"));
  }
}

TEST_F(Resume, WithoutACheckpointBeginsAtTheFirstStep) {
  const Arguments train{"train",   "--model", "tiny",           "--data", "synth:1x12x12/3@40",
                        "--batch", "8",       "--deterministic"};
  succeed(train + Arguments{"--steps", "2", "--out", at("run")});
  const std::string model = model_at("run", 2);
  fs::remove_all(folder.path() / "run" / "checkpoints");
  const ProgramRun run = run_regatta({"train", "--resume", at("run")});
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.err, testing::HasSubstr("'" + at("run") +
                                          "' has no checkpoint yet: starting from its first step"));
  EXPECT_EQ(model_at("run", 2), model);
}

TEST_F(Resume, FromCheckpointsOfAnOlderVersionIsRefused) {
  succeed({"train", "--model", "tiny", "--data", "synth:1x12x12/3@40", "--batch", "8", "--steps",
           "2", "--out", at("run")});
  const std::string step = at("run/checkpoints/step-2");
  fs::remove(fs::path(step) / "manifest.json");
  for (const char* command : {"train --resume", "eval --run"}) {
    const std::string text = command;
    const std::size_t space = text.find(' ');
    const ProgramRun run = run_regatta(
        {text.substr(0, space), text.substr(space + 1), at("run"), "--data", "synth:1x12x12/3@40"});
    EXPECT_EQ(run.code, 2);
    EXPECT_THAT(run.err, testing::AllOf(testing::HasSubstr("it has no manifest.json"),
                                        testing::HasSubstr("--init " + step)));
  }
}

TEST_F(Resume, GoesAsFarAsTheRunWasMeantTo) {
  const Arguments train{"train",   "--model", "tiny",           "--data", "synth:1x12x12/3@40",
                        "--batch", "8",       "--deterministic"};
  succeed(train + Arguments{"--steps", "4", "--out", at("run")});
  Json run = read_json(folder.path() / "run" / "run.json");
  run["last_step"] = 7;  // as if it had been stopped
  write_file(folder.path() / "run" / "run.json", run.dump());
  succeed({"train", "--resume", at("run")});
  EXPECT_EQ(latest_checkpoint(at("run")).filename(), "step-7");
}

}  // namespace
}  // namespace regatta
