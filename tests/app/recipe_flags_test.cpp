// Flags of the recipe: what is refused and why, what reaches run.json, and that a resumed run takes
// the same steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "base/files.h"
#include "base/json.h"
#include "plan/recipe.h"
#include "support/program_run.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;
using Arguments = std::vector<std::string>;

Arguments words(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

class RecipeFlagsTest : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return (folder.path() / name).string(); }

  // Ten steps of four make an epoch.
  ProgramRun train(const std::string& flags, const std::string& out) const {
    return run_regatta(
        words("train --model tiny --data synth:1x12x12/3@40 --batch 4 "
              "--deterministic --out " +
              at(out) + " " + flags));
  }
  std::string model_at(const std::string& name, std::int64_t step) const {
    return read_file(folder.path() / name / "checkpoints" / ("step-" + std::to_string(step)) /
                     "model.safetensors");
  }
  Json recipe_of(const std::string& name) const {
    return read_json(folder.path() / name / "run.json").at("recipe");
  }

  const TemporaryFolder folder;
};

TEST_F(RecipeFlagsTest, WhatMakesNoSenseIsRefusedByName) {
  const std::pair<const char*, const char*> cases[]{
      {"--optimizer adma", "did you mean 'adam'?"},
      {"--optimizer adam --momentum 0.9", "--momentum does not concern --optimizer adam"},
      {"--optimizer sgd --beta2 0.9", "--beta2 does not concern --optimizer sgd"},
      {"--optimizer adam --trust 1", "--trust does not concern --optimizer adam"},
      {"--optimizer adam --beta1 1", "--beta1 1: use a number from 0 to below 1"},
      {"--optimizer nesterov --momentum 0", "nesterov needs a momentum above 0"},
      {"--clip-norm -1", "--clip-norm -1"},
      {"--clip-norm 1 --clip-value 1", "exclude each other"},
      {"--ema 1", "--ema 1"},
      {"--label-smoothing 1.5", "--label-smoothing 1.5"},
      {"--mixup nan", "--mixup nan"},
      {"--accumulate 0", "--accumulate"},
      {"--schedule cosin", "did you mean 'cosine'?"},
      {"--schedule step", "needs --step-size"},
      {"--schedule step --step-size 3x", "--step-size 3x: use steps, such as 500, or epochs"},
      {"--schedule step --step-size 0", "--step-size 0"},
      {"--schedule cosine --gamma 0.5", "--gamma does not concern --schedule cosine"},
      {"--final-lr 0.5", "--final-lr does not concern --schedule constant"},
      {"--schedule one-cycle --warmup 3", "--warmup does not concern --schedule one-cycle"},
      {"--schedule cosine --cycle-momentum", "--cycle-momentum does not concern"},
      {"--schedule cosine --warmup 1e", "leaves none of 10"},
      {"--warmup-start 0.5", "--warmup-start needs --warmup"},
      {"--dropout 0.5", "has no dropout layer"},
      {"--batch-norm group:2", "has no batch norm"},
      {"--batch-norm groups:2", "--batch-norm groups:2: use whole, or group:G"},
      {"--batch-norm group:0", "--batch-norm group:0: use whole, or group:G"},
  };
  for (const auto& [flags, expected] : cases) {
    const ProgramRun run = train(flags, "refused");
    EXPECT_EQ(run.code, 2) << flags;
    EXPECT_THAT(run.err, HasSubstr(expected)) << flags;
    EXPECT_FALSE(std::filesystem::exists(at("refused"))) << flags;
  }
}

TEST_F(RecipeFlagsTest, EverythingReachesTheRecipeAndComesBack) {
  const ProgramRun run = train(
      "--steps 4 --optimizer adamw --lr 0.002 --beta1 0.8 --weight-decay 0.1 --clip-norm 2 "
      "--ema 0.9 --accumulate 2 --schedule cosine --warmup 1 --final-lr 1e-5 "
      "--label-smoothing 0.1 --mixup 0.2",
      "run");
  ASSERT_EQ(run.code, 0) << run.err;
  const Json json = recipe_of("run");
  const Recipe recipe = recipe_from_json(json);
  EXPECT_EQ(recipe.optimizer.kind, OptimizerKind::adamw);
  EXPECT_EQ(recipe.optimizer.beta1, 0.8);
  EXPECT_EQ(recipe.optimizer.clip_norm, 2);
  EXPECT_EQ(recipe.optimizer.ema, 0.9);
  EXPECT_EQ(recipe.accumulate, 2);
  EXPECT_EQ(recipe.schedule,
            (Schedule{.kind = ScheduleKind::cosine, .steps = 4, .final_rate = 1e-5, .warmup = 1}));
  EXPECT_EQ(recipe.label_smoothing, 0.1);
  EXPECT_EQ(recipe.mixup, 0.2);
  EXPECT_EQ(recipe.to_json(), json);
  std::ifstream metrics(folder.path() / "run" / "metrics.jsonl");
  std::string line;
  std::getline(metrics, line);
  EXPECT_DOUBLE_EQ(Json::parse(line).at("lr"), 0.002 * 0.01);
}

TEST_F(RecipeFlagsTest, APlainRecipeIsWrittenAsItAlwaysWas) {
  ASSERT_EQ(train("--steps 1", "run").code, 0);
  const Json json = recipe_of("run");
  EXPECT_EQ(
      json.at("optimizer"),
      (Json{{"name", "sgd"}, {"learning_rate", 0.01}, {"momentum", 0.9}, {"weight_decay", 0.0}}));
  for (const char* key : {"schedule", "accumulate", "mixup", "label_smoothing", "dropout"})
    EXPECT_FALSE(json.contains(key)) << key;
}

TEST_F(RecipeFlagsTest, AResumedRunTakesTheSameSteps) {
  const std::string flags =
      "--optimizer adam --clip-norm 0.5 --ema 0.9 --accumulate 2 --schedule one-cycle "
      "--cycle-momentum --mixup 0.4 --label-smoothing 0.1 --steps 8 ";
  ASSERT_EQ(train(flags, "straight").code, 0);
  // Killed after three steps: the newest checkpoint is there, the run's goal is still eight.
  ASSERT_EQ(train(flags + "--checkpoint-every 3 --keep 9", "stopped").code, 0);
  for (const char* later : {"step-5", "step-6", "step-8"})
    std::filesystem::remove_all(folder.path() / "stopped" / "checkpoints" / later);
  const ProgramRun resumed = run_regatta({"train", "--resume", at("stopped")});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(model_at("stopped", 8), model_at("straight", 8));
}

// 40 images in batches of 12: groups of 5, 5, 2, and of the epoch's last batch 4.
TEST_F(RecipeFlagsTest, GroupsOfBatchNormAreTheRunsOnAnyPlan) {
  const auto train_groups = [&](const std::string& flags, const std::string& out) {
    return run_regatta(
        words("train --model resnet20 --data synth:3x32x32/3@40 --batch 12 --granularity fixed "
              "--batch-norm group:5 --test none --out " +
              at(out) + " " + flags));
  };
  ASSERT_EQ(train_groups("--epochs 2 --chunks 1", "whole").code, 0);
  const ProgramRun cut = train_groups("--epochs 1 --chunks 5,7 --workers 2", "cut");
  ASSERT_EQ(cut.code, 0) << cut.err;
  EXPECT_EQ(recipe_of("cut").at("batch_norm"), "group:5");
  EXPECT_EQ(recipe_of("cut"), recipe_of("whole"));
  const ProgramRun resumed = run_regatta({"train", "--resume", at("cut"), "--epochs", "2"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  // Training is chaotic: of later steps, rounding decides too.
  const auto losses_of = [&](const char* name) {
    std::ifstream metrics(folder.path() / name / "metrics.jsonl");
    std::vector<double> losses;
    for (std::string line; std::getline(metrics, line) && losses.size() < 2;)
      losses.push_back(Json::parse(line).at("loss"));
    return losses;
  };
  EXPECT_THAT(losses_of("cut"), testing::Pointwise(testing::DoubleNear(1e-3), losses_of("whole")));
  const ProgramRun eval =
      run_regatta({"eval", "--run", at("cut"), "--data", "synth:3x32x32/3@10", "--batch", "7"});
  EXPECT_EQ(eval.code, 0) << eval.err;
  const ProgramRun broken = train_groups("--chunks 6,6", "broken");
  EXPECT_EQ(broken.code, 2);
  EXPECT_THAT(broken.err, HasSubstr("all sizes but the last are multiples of 5"));
}

TEST_F(RecipeFlagsTest, TestsAreOnAveragedWeightsAndSaySo) {
  const ProgramRun run = train("--epochs 2 --lr 0.05 --ema 0.9 --json " + at("train.json"), "run");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("(averaged weights)"));
  ASSERT_EQ(run_regatta(words("eval --run " + at("run") + " --json " + at("eval.json"))).code, 0);
  const std::string own = "eval --model tiny --input 1x12x12 --data synth:1x12x12/3@40 --weights " +
                          at("run/checkpoints/step-20/model.safetensors");
  ASSERT_EQ(run_regatta(words(own + " --json " + at("own.json"))).code, 0);
  const double tested = read_json(at("train.json")).at("epochs").back().at("test_loss");
  EXPECT_NEAR(read_json(at("eval.json")).at("loss"), tested, 1e-6);
  EXPECT_GT(std::abs(read_json(at("own.json")).at("loss").get<double>() - tested), 1e-4);
}

}  // namespace
}  // namespace regatta
