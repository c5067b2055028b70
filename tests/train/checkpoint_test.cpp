#include "train/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/files.h"
#include "support/error_text.h"
#include "support/small_run.h"
#include "support/temporary_folder.h"
#include "train/weights.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

class Checkpoint : public testing::Test {
 protected:
  Checkpoint() { initialise_weights(executor, 1); }

  // So that weights, statistics and momenta are all their own.
  void train_steps(std::int64_t steps) {
    TrainGoal goal;
    goal.last_step = steps;
    Recorder recorder;
    train(executor, job.recipe, job.data, nullptr, goal, recorder);
  }

  const TrainJob job = small_job();
  Executor executor{job.graph, job.plan, job.exec_options(true)};
  const TemporaryFolder run;
};

TEST_F(Checkpoint, HoldsEverythingARunGoesOnFrom) {
  train_steps(3);
  save_checkpoint(run.path(), executor, 3);
  const fs::path saved = run.path() / "checkpoints" / "step-3";
  EXPECT_THAT(names_in(saved),
              ElementsAre("model.safetensors", "optimizer.safetensors", "state.json"));

  initialise_weights(executor, 2);
  EXPECT_EQ(load_checkpoint(saved, executor), 3);
  save_checkpoint(run.path(), executor, 4);
  for (const char* file : {"model.safetensors", "optimizer.safetensors"})
    EXPECT_EQ(read_file(saved / file), read_file(run.path() / "checkpoints" / "step-4" / file))
        << file;
}

TEST_F(Checkpoint, TheNewestIsTheOneWithMostSteps) {
  save_checkpoint(run.path(), executor, 9);
  save_checkpoint(run.path(), executor, 10);
  EXPECT_EQ(latest_checkpoint(run.path()).filename(), "step-10");
}

TEST_F(Checkpoint, AHalfWrittenOneDoesNotCount) {
  save_checkpoint(run.path(), executor, 1);
  fs::create_directories(run.path() / "checkpoints" / "step-2.part");
  fs::create_directories(run.path() / "checkpoints" / "step-");
  EXPECT_EQ(latest_checkpoint(run.path()).filename(), "step-1");
  save_checkpoint(run.path(), executor, 2);  // takes the place of the half-written one
  EXPECT_EQ(names_in(run.path() / "checkpoints"),
            (std::set<std::string>{"step-", "step-1", "step-2"}));
}

TEST_F(Checkpoint, OnlyTheNewestAreKept) {
  for (const std::int64_t step : {8, 9, 10, 11}) save_checkpoint(run.path(), executor, step, 2);
  EXPECT_EQ(names_in(run.path() / "checkpoints"), (std::set<std::string>{"step-10", "step-11"}));
}

TEST_F(Checkpoint, WithoutOneTheRunIsNamed) {
  EXPECT_THAT(error_text([&] { latest_checkpoint(run.path()); }),
              HasSubstr("'" + run.path().string() + "' has no checkpoint"));
}

TEST_F(Checkpoint, AStateWithoutAStepIsNamed) {
  save_checkpoint(run.path(), executor, 1);
  const fs::path saved = run.path() / "checkpoints" / "step-1";
  for (const char* damage : {"[]", "{}", R"({"step": "one"})", R"({"step": -1})"}) {
    write_file(saved / "state.json", damage);
    EXPECT_THAT(error_text([&] { load_checkpoint(saved, executor); }),
                HasSubstr("state.json' does not say its step"))
        << damage;
  }
}

}  // namespace
}  // namespace regatta
