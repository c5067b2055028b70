#include "train/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/files.h"
#include "support/error_text.h"
#include "support/file_size_limit.h"
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
  save_checkpoint(run.path(), executor, {.step = 3});
  const fs::path saved = run.path() / "checkpoints" / "step-3";
  EXPECT_THAT(names_in(saved), ElementsAre("manifest.json", "model.safetensors",
                                           "optimizer.safetensors", "state.json"));

  initialise_weights(executor, 2);
  EXPECT_EQ(load_checkpoint(saved, executor).step, 3);
  save_checkpoint(run.path(), executor, {.step = 4});
  for (const char* file : {"model.safetensors", "optimizer.safetensors"})
    EXPECT_EQ(read_file(saved / file), read_file(run.path() / "checkpoints" / "step-4" / file))
        << file;
}

TEST_F(Checkpoint, KnowsTheEpochSoFarToTheLastBit) {
  save_checkpoint(run.path(), executor,
                  {.step = 3, .loss_sum = 0.1 + 0.2, .seen = 12, .correct = 7});
  const TrainState state = load_checkpoint(latest_checkpoint(run.path()), executor);
  EXPECT_EQ(state.loss_sum, 0.1 + 0.2);
  EXPECT_EQ(state.seen, 12);
  EXPECT_EQ(state.correct, 7);
}

TEST_F(Checkpoint, TheNewestIsTheOneWithMostSteps) {
  save_checkpoint(run.path(), executor, {.step = 9});
  save_checkpoint(run.path(), executor, {.step = 10});
  EXPECT_EQ(latest_checkpoint(run.path()).filename(), "step-10");
}

TEST_F(Checkpoint, AHalfWrittenOneDoesNotCount) {
  save_checkpoint(run.path(), executor, {.step = 1});
  fs::create_directories(run.path() / "checkpoints" / "step-2.part");
  fs::create_directories(run.path() / "checkpoints" / "step-");
  EXPECT_EQ(latest_checkpoint(run.path()).filename(), "step-1");
  save_checkpoint(run.path(), executor, {.step = 2});  // takes the place of the half-written one
  EXPECT_EQ(names_in(run.path() / "checkpoints"),
            (std::set<std::string>{"step-", "step-1", "step-2"}));
}

TEST_F(Checkpoint, OnlyTheNewestAreKept) {
  for (const std::int64_t step : {8, 9, 10, 11})
    save_checkpoint(run.path(), executor, {.step = step}, 2);
  EXPECT_EQ(names_in(run.path() / "checkpoints"), (std::set<std::string>{"step-10", "step-11"}));
}

TEST_F(Checkpoint, WithoutOneTheRunIsNamed) {
  EXPECT_THAT(error_text([&] { latest_checkpoint(run.path()); }),
              HasSubstr("'" + run.path().string() + "' has no checkpoint"));
}

// Every way a file can go bad, in every file.
TEST_F(Checkpoint, ADamagedOneIsPassedOverAndNamed) {
  save_checkpoint(run.path(), executor, {.step = 1});
  const fs::path whole = run.path() / "checkpoints" / "step-1";
  const fs::path newest = run.path() / "checkpoints" / "step-2";
  for (const char* file :
       {"manifest.json", "model.safetensors", "optimizer.safetensors", "state.json"})
    for (const char* damage : {"gone", "empty", "cut", "longer", "flipped"}) {
      fs::remove_all(newest);
      fs::copy(whole, newest);
      std::string bytes = read_file(newest / file);
      if (damage == std::string("empty")) bytes.clear();
      if (damage == std::string("cut")) bytes.resize(bytes.size() / 2);
      if (damage == std::string("longer")) bytes += "more";
      // A digit near the end is part of a checksum, a tensor or a number.
      if (damage == std::string("flipped")) bytes[bytes.find_last_of("0123456789")] ^= 1;
      fs::remove(newest / file);
      if (damage != std::string("gone")) write_file(newest / file, bytes);
      std::vector<std::string> damaged;
      EXPECT_EQ(latest_checkpoint(run.path(), &damaged).filename(), "step-1") << file << damage;
      ASSERT_EQ(damaged.size(), 1u);
      EXPECT_THAT(damaged[0], HasSubstr("step-2' is damaged: ")) << damage;
      // A manifest that lies blames the file it lies about.
      const bool lies = damage == std::string("flipped") && file == std::string("manifest.json");
      EXPECT_THAT(damaged[0], HasSubstr(lies ? "checksum" : file)) << damage;
    }
}

TEST_F(Checkpoint, WhenAllAreDamagedTheNewestFaultIsTold) {
  save_checkpoint(run.path(), executor, {.step = 1});
  write_file(run.path() / "checkpoints" / "step-1" / "model.safetensors", "short");
  EXPECT_THAT(error_text([&] { latest_checkpoint(run.path()); }),
              HasSubstr("step-1' is damaged: model.safetensors has 5 bytes instead of"));
}

TEST_F(Checkpoint, OldOnesWithoutAManifestAreToldApart) {
  save_checkpoint(run.path(), executor, {.step = 1});
  const fs::path checkpoint = run.path() / "checkpoints" / "step-1";
  fs::remove(checkpoint / "manifest.json");
  const std::string text = error_text([&] { latest_checkpoint(run.path()); });
  EXPECT_THAT(text,
              HasSubstr("it has no manifest.json to check it by, as those of older versions"));
  EXPECT_THAT(text, HasSubstr("--init " + (checkpoint / "model.safetensors").string()));
}

TEST_F(Checkpoint, TheBestStaysWhenItsStepGoes) {
  save_checkpoint(run.path(), executor, {.step = 1}, 1, Score{0.75, 0.5}, true);
  const std::string model = read_file(best_checkpoint(run.path()) / "model.safetensors");
  train_steps(2);
  save_checkpoint(run.path(), executor, {.step = 2}, 1, Score{0.5, 0.4});
  EXPECT_EQ(names_in(run.path() / "checkpoints"), (std::set<std::string>{"best", "step-2"}));
  EXPECT_EQ(read_file(best_checkpoint(run.path()) / "model.safetensors"), model);
  EXPECT_EQ(best_score(run.path())->test_accuracy, 0.75);
  save_checkpoint(run.path(), executor, {.step = 3}, 1, Score{0.875, 0.3}, true);
  EXPECT_EQ(best_score(run.path())->loss, 0.3);
  EXPECT_EQ(names_in(run.path() / "checkpoints"), (std::set<std::string>{"best", "step-3"}));
}

TEST_F(Checkpoint, WithoutABestOneThatIsSaid) {
  EXPECT_FALSE(best_score(run.path()));
  EXPECT_THAT(error_text([&] { best_checkpoint(run.path()); }), HasSubstr("no best checkpoint"));
  save_checkpoint(run.path(), executor, {.step = 1}, 1, Score{0.75, 0.5}, true);
  fs::remove(run.path() / "checkpoints" / "best" / "state.json");
  EXPECT_FALSE(best_score(run.path()));
  EXPECT_THAT(error_text([&] { best_checkpoint(run.path()); }), HasSubstr("state.json is missing"));
}

TEST_F(Checkpoint, OfOneStepTheLaterReplacesTheEarlier) {
  save_checkpoint(run.path(), executor, {.step = 1, .seen = 5});
  save_checkpoint(run.path(), executor, {.step = 1, .seen = 6});
  EXPECT_EQ(load_checkpoint(latest_checkpoint(run.path()), executor).seen, 6);
  EXPECT_EQ(names_in(run.path() / "checkpoints"), std::set<std::string>{"step-1"});
}

TEST_F(Checkpoint, WeightsThatAreNoNumbersAreNotKept) {
  save_checkpoint(run.path(), executor, {.step = 1});
  std::vector<float> values = executor.parameter(ParameterId{0});
  values.back() = NAN;
  executor.set_parameter(ParameterId{0}, values);
  EXPECT_THAT(error_text([&] { save_checkpoint(run.path(), executor, {.step = 2}); }),
              HasSubstr("after step 2, 'conv.weight' holds a value that is no longer a number"));
  EXPECT_EQ(names_in(run.path() / "checkpoints"), std::set<std::string>{"step-1"});
}

TEST_F(Checkpoint, AFullDiskLeavesTheOneBeforeAndNothingHalfWritten) {
  save_checkpoint(run.path(), executor, {.step = 1}, 1);
  const std::uintmax_t model =
      fs::file_size(run.path() / "checkpoints" / "step-1" / "model.safetensors");
  for (const rlim_t limit : {rlim_t{0}, rlim_t{100}, rlim_t{model - 1}, rlim_t{model}}) {
    const std::string said = [&] {
      const FileSizeLimit full(limit);
      return error_text([&] {
        save_checkpoint(run.path(), executor, {.step = 2}, 1, Score{0.5, 1}, true);
        throw InputError("saved");
      });
    }();
    EXPECT_THAT(said, HasSubstr(limit < model ? "cannot write '" + run.path().string() : "saved"))
        << limit;
    EXPECT_EQ(latest_checkpoint(run.path()).filename(), limit < model ? "step-1" : "step-2");
    for (const std::string& name : names_in(run.path() / "checkpoints"))
      EXPECT_THAT(name, testing::AnyOf("step-1", "step-2", "best")) << limit;
  }
}

TEST_F(Checkpoint, ARunFolderThatIsGoneIsNotMadeAnew) {
  const fs::path gone = run.path() / "gone";
  EXPECT_THAT(error_text([&] { save_checkpoint(gone, executor, {.step = 1}); }),
              HasSubstr("cannot create '" + (gone / "checkpoints").string() + "': No such"));
  EXPECT_FALSE(fs::exists(gone));
}

TEST_F(Checkpoint, LeftoversOfACrashAreCleared) {
  save_checkpoint(run.path(), executor, {.step = 1});
  save_checkpoint(run.path(), executor, {.step = 2});
  fs::create_directories(run.path() / "checkpoints" / "step-3.part");
  fs::create_directories(run.path() / "checkpoints" / "best.part");
  run.file("run.json.part-77", "{");
  clear_leftovers(run.path(), 1);  // step-2 was found damaged
  EXPECT_EQ(names_in(run.path()), std::set<std::string>{"checkpoints"});
  EXPECT_EQ(names_in(run.path() / "checkpoints"),
            (std::set<std::string>{"step-1", "step-2.damaged"}));
  EXPECT_EQ(latest_checkpoint(run.path()).filename(), "step-1");
}

TEST_F(Checkpoint, AStateWithoutAStepIsNamed) {
  save_checkpoint(run.path(), executor, {.step = 1});
  const fs::path saved = run.path() / "checkpoints" / "step-1";
  for (const char* damage : {"[]", "{}", R"({"step": "one"})", R"({"step": -1})", "{",
                             R"({"step": -1, "epoch": {"seen": 0, "correct": 0, "loss_sum": 0}})",
                             R"({"step": 1, "epoch": {"seen": 0, "correct": 0}})"}) {
    write_file(saved / "state.json", damage);
    EXPECT_THAT(error_text([&] { load_checkpoint(saved, executor); }),
                HasSubstr("state.json' does not say where the run stood"))
        << damage;
  }
}

TEST(Score, IsTheTestsAccuracyThenTheLoss) {
  EXPECT_TRUE((Score{0.9, 5}).better_than(Score{0.8, 1}));
  EXPECT_TRUE((Score{0.9, 1}).better_than(Score{0.9, 5}));
  EXPECT_FALSE((Score{0.9, 1}).better_than(Score{0.9, 1}));
  EXPECT_TRUE((Score{{}, 1}).better_than(Score{{}, 2}));
  EXPECT_TRUE((Score{0.1, 9}).better_than(Score{{}, 1}));
  EXPECT_FALSE((Score{{}, 1}).better_than(Score{0.1, 9}));
}

TEST(CheckpointPolicy, IsStepsOrTime) {
  EXPECT_EQ(CheckpointPolicy::parse("500", 2).steps, 500);
  EXPECT_EQ(CheckpointPolicy::parse("30s", 2).time, Seconds(30));
  EXPECT_EQ(CheckpointPolicy::parse("10m", 2).time, Seconds(600));
  EXPECT_EQ(CheckpointPolicy::parse("2h", 3).time, Seconds(7200));
  for (const char* wrong : {"", "0", "-1", "m", "10d", "1.5h", "99999999999"})
    EXPECT_THAT(error_text([&] { CheckpointPolicy::parse(wrong, 2); }),
                HasSubstr("--checkpoint-every " + std::string(wrong) + ": "));
}

TEST(CheckpointPolicy, ComesBackFromJson) {
  const CheckpointPolicy policy = CheckpointPolicy::parse("10m", 7);
  EXPECT_EQ(CheckpointPolicy::from_json(policy.to_json()).to_json(), policy.to_json());
  EXPECT_EQ(CheckpointPolicy::from_json(policy.to_json()).keep, 7);
}

}  // namespace
}  // namespace regatta
