// Masks through the program: pruned from a run, trained with, kept by the run, exported, compacted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/files.h"
#include "base/json.h"
#include "data/mask.h"
#include "data/npy.h"
#include "data/safetensors.h"
#include "support/program_run.h"
#include "support/temporary_folder.h"
#include "train/masking.h"
#include "train/run_folder.h"
#include "train/weights.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Tickets : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return (folder.path() / name).string(); }

  // "@name" is a path in the test's folder.
  ProgramRun run(const std::string& text) const {
    std::vector<std::string> arguments;
    std::istringstream stream(text);
    for (std::string word; stream >> word;)
      arguments.push_back(word.starts_with("@") ? at(word.substr(1)) : word);
    return run_regatta(arguments);
  }
  void succeed(const std::string& text) const {
    const ProgramRun done = run(text);
    ASSERT_EQ(done.code, 0) << text << ": " << done.err;
  }
  std::string refused(const std::string& text) const {
    const ProgramRun done = run(text);
    EXPECT_EQ(done.code, 2) << text;
    EXPECT_EQ(std::ranges::count(done.err, '\n'), 1) << done.err;
    return done.err;
  }
  // Ten steps make an epoch.
  void train(const std::string& more) const {
    succeed("train --model tiny --data synth:1x12x12/3@40 --batch 4 --deterministic --test none " +
            more);
  }
  TensorFile model_of(const std::string& name, int step) const {
    return read_safetensors(fs::path(at(name)) / "checkpoints" / ("step-" + std::to_string(step)) /
                            "model.safetensors");
  }
  void expect_masked(const std::string& name, int step, const Mask& mask) const {
    TensorFile file = model_of(name, step);
    const TensorFile before = file;
    zero_masked(mask, file);
    for (std::size_t i = 0; i < file.tensors.size(); ++i)
      EXPECT_EQ(file.tensors[i].bytes, before.tensors[i].bytes) << file.tensors[i].name;
  }

  const TemporaryFolder folder;
};

TEST_F(Tickets, ARunIsPrunedTrainedByItsMaskAndResumed) {
  train("--out @dense");
  succeed("tickets prune @dense --keep 0.2 --out @mask --json @mask.json");
  const Mask mask = read_mask(at("mask"));
  EXPECT_NEAR(mask.density(), 0.2, 0.001);
  const Json told = read_json(at("mask.json"));
  EXPECT_EQ(told["density"], mask.density());
  EXPECT_EQ(told["layers"].size(), 2u);

  train("--mask @mask --steps 10 --out @straight");
  const Json run_json = read_json(fs::path(at("straight")) / "run.json");
  EXPECT_EQ(run_json["recipe"]["mask"], mask.fingerprint());
  EXPECT_EQ(run_json["mask"]["density"], mask.density());
  EXPECT_EQ(read_mask(at("straight/mask.safetensors")), mask);
  expect_masked("straight", 10, mask);

  // The run has all it needs; the mask's file may go.
  train("--mask @mask --steps 4 --out @stopped");
  fs::remove(at("mask"));
  succeed("train --resume @stopped --steps 10");
  EXPECT_EQ(read_file(fs::path(at("stopped")) / "checkpoints/step-10/model.safetensors"),
            read_file(fs::path(at("straight")) / "checkpoints/step-10/model.safetensors"));
  EXPECT_EQ(read_json(fs::path(at("stopped")) / "run.json")["mask"]["density"], mask.density());
}

TEST_F(Tickets, IterativePruningGoesOnFromTheRunsOwnMask) {
  train("--out @dense");
  succeed("tickets prune @dense --keep 0.5 --out @half");
  train("--mask @half --out @second");
  succeed("tickets prune @second --keep 0.25 --by random --out @quarter");
  const Mask half = read_mask(at("half")), quarter = read_mask(at("quarter"));
  for (std::size_t t = 0; t < half.tensors.size(); ++t)
    for (std::size_t b = 0; b < half.tensors[t].bits.size(); ++b)
      EXPECT_EQ(quarter.tensors[t].bits[b] & ~half.tensors[t].bits[b], 0);
  EXPECT_THAT(refused("tickets prune @second --keep 0.75 --out @more"), HasSubstr("only 0.5 left"));
  EXPECT_FALSE(fs::exists(at("more")));
}

TEST_F(Tickets, PruningByIncreaseComparesWithTheFirstWeights) {
  train("--out @dense");
  succeed("tickets prune @dense --keep 0.1 --by magnitude-increase --out @mask");
  const TrainJob job = read_run_json(at("dense")).job;
  const Weights start = initial_weights(job.graph, job.recipe.seed);
  const Weights end = weights_from(job.graph, model_of("dense", 10), "dense");
  double least = 1e9, most = -1e9;  // of weights that stay, and of those that go
  for (const MaskTensor& tensor : read_mask(at("mask")).tensors)
    for (std::int64_t i = 0; i < tensor.count(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      const double grown = std::abs(end.at(tensor.name)[at]) - std::abs(start.at(tensor.name)[at]);
      if (tensor.keeps(i))
        least = std::min(least, grown);
      else
        most = std::max(most, grown);
    }
  EXPECT_GE(least, most);

  const std::string init = at("dense/checkpoints/step-10/model.safetensors");
  train("--out @again --init " + init);
  EXPECT_THAT(refused("tickets prune @again --keep 0.1 --by magnitude-increase --out @no"),
              HasSubstr("give them with --initial"));
  succeed("tickets prune @again --keep 0.1 --by magnitude-increase --out @yes --initial " + init);
}

TEST_F(Tickets, ACheckpointIsPrunedLikeARun) {
  train("--out @dense");
  succeed("tickets prune @dense --keep 0.3 --out @run");
  succeed("tickets prune @dense/checkpoints/step-10 --keep 0.3 --out @step");
  succeed("tickets prune @dense/checkpoints/step-10/ --keep 0.3 --out @slash");
  EXPECT_EQ(read_mask(at("run")), read_mask(at("step")));
  EXPECT_EQ(read_mask(at("run")), read_mask(at("slash")));
}

TEST_F(Tickets, WhatDoesNotFitIsRefusedInALine) {
  train("--out @dense");
  succeed("tickets prune @dense --keep 0.3 --out @mask");
  const std::string other = "train --data synth:1x28x28/10@40 --test none --out @other";
  EXPECT_THAT(refused(other + " --model lenet5 --mask @mask"), HasSubstr("is for tiny#"));
  EXPECT_THAT(refused(other + " --model lenet5 --mask @none"), HasSubstr("none"));
  EXPECT_THAT(refused(other + " --model lenet5 --mask @dense/run.json"),
              HasSubstr("not a usable safetensors file"));
  EXPECT_FALSE(fs::exists(at("other")));
  EXPECT_THAT(refused("tickets prune @dense --keep 1.5 --out @no"), HasSubstr("0 to 1"));
  EXPECT_THAT(refused("tickets prune @dense --keep 0 --out @no"), HasSubstr("--keep 0"));
  EXPECT_THAT(refused("tickets prune @dense --keep 0.5 --by size --out @no"), HasSubstr("size"));
  EXPECT_THAT(refused("tickets prune @nothing --keep 0.5 --out @no"), HasSubstr("run.json"));
  EXPECT_THAT(refused("tickets export @dense --out @no"), HasSubstr("give one with --mask"));
  EXPECT_THAT(refused("tickets prune @dense --keep 0.5 --initial @mask --out @no"),
              HasSubstr("--by magnitude-increase"));
  EXPECT_THAT(refused("train --resume @dense --mask @mask --steps 20"), HasSubstr("--mask"));
}

TEST_F(Tickets, AMaskThatWasChangedIsNotGoneOnWith) {
  train("--out @dense");
  succeed("tickets prune @dense --keep 0.3 --out @mask");
  train("--mask @mask --steps 4 --out @run");
  succeed("tickets prune @dense --keep 0.4 --out @run/mask.safetensors");
  EXPECT_THAT(refused("train --resume @run --steps 6"), HasSubstr("the recipe's is"));
  fs::remove(at("run/mask.safetensors"));
  EXPECT_THAT(refused("train --resume @run --steps 6"), HasSubstr("mask.safetensors"));
}

TEST_F(Tickets, APlanForAMaskedRecipeTakesTheMaskAgain) {
  train("--out @dense");
  succeed("tickets prune @dense --keep 0.3 --out @mask");
  succeed("tickets prune @dense --keep 0.4 --out @other");
  succeed(
      "plan --model tiny --data synth:1x12x12/3@40 --batch 4 --mask @mask --granularity fixed "
      "--out @plan.json");
  const std::string planned = "train --plan @plan.json --steps 3 --test none --out @planned";
  EXPECT_THAT(refused(planned), HasSubstr("give it with --mask"));
  EXPECT_THAT(refused(planned + " --mask @other"), HasSubstr("the recipe's is"));
  succeed(planned + " --mask @mask");
  expect_masked("planned", 3, read_mask(at("mask")));
}

TEST_F(Tickets, AnExportHasTheNamesOfPyTorchsPruning) {
  train("--out @dense");
  succeed("tickets prune @dense --keep 0.3 --out @mask");
  succeed("tickets export @dense --mask @mask --out @ticket");
  const TensorFile file = read_safetensors(at("ticket"));
  std::vector<std::string> names;
  for (const NamedTensor& tensor : file.tensors) names.push_back(tensor.name);
  EXPECT_THAT(
      names, testing::UnorderedElementsAre("conv.weight_orig", "conv.weight_mask", "conv.bias",
                                           "dense.weight_orig", "dense.weight_mask", "dense.bias"));
  const NamedTensor& bits = *file.find("dense.weight_mask");
  const NamedTensor& weights = *file.find("dense.weight_orig");
  EXPECT_EQ(bits.shape, weights.shape);
  const Mask mask = read_mask(at("mask"));
  for (std::int64_t i = 0; i < mask.find("dense.weight")->count(); ++i) {
    float bit = 0, weight = 0;
    std::memcpy(&bit, bits.bytes.data() + 4 * i, 4);
    std::memcpy(&weight, weights.bytes.data() + 4 * i, 4);
    EXPECT_EQ(bit, mask.find("dense.weight")->keeps(i) ? 1 : 0);
    if (bit == 0) {
      EXPECT_EQ(weight, 0);
    }
  }
}

TEST_F(Tickets, ACompactedNetworkGivesTheSameAnswersAndTrains) {
  const std::string data = " --data synth:1x28x28/10@64 ", steps = "--steps 2 --test none ";
  succeed("train --model lenet5" + data + steps + "--out @dense");
  // The second one is left with layers of one channel each.
  for (const std::string how : {"0.3 --scope channel", "0.01 --scope global"}) {
    const std::string name = how.substr(0, 4) == "0.3 " ? "a" : "b";
    succeed("tickets prune @dense --keep " + how + " --out @mask-" + name);
    succeed("train --model lenet5" + data + steps + "--mask @mask-" + name + " --out @" + name);
    const std::string small = "@small-" + name;
    succeed("tickets compact @" + name + " --out " + small + " --json @small.json");
    const Json told = read_json(at("small.json"));
    EXPECT_LT(told["channels"]["after"], told["channels"]["before"]);
    EXPECT_LT(told["multiply_adds"]["after"], told["multiply_adds"]["before"]);
    succeed("predict --run @" + name + data + "--out @whole.npy");
    succeed("predict --model " + small + "/network.json --weights " + small + "/model.safetensors" +
            data + "--out @less.npy");
    const NpyArray whole = read_npy(at("whole.npy")), less = read_npy(at("less.npy"));
    ASSERT_EQ(whole.shape, less.shape);
    for (std::size_t i = 0; i < whole.bytes.size() / 4; ++i) {
      float a = 0, b = 0;
      std::memcpy(&a, whole.bytes.data() + 4 * i, 4);
      std::memcpy(&b, less.bytes.data() + 4 * i, 4);
      ASSERT_NEAR(a, b, 1e-4);
    }
    succeed("train --model " + small + "/network.json --init " + small +
            "/model.safetensors --mask " + small + "/mask.safetensors" + data + steps +
            "--out @on-" + name);
    EXPECT_THAT(refused("tickets compact @" + name + " --out " + small),
                HasSubstr("is there already"));
  }
}

TEST_F(Tickets, EverySubcommandHasHelpWithAnExample) {
  for (const char* name : {"prune", "export", "compact"}) {
    const ProgramRun help = run(std::string("tickets ") + name + " --help");
    EXPECT_EQ(help.code, 0);
    EXPECT_THAT(help.out, HasSubstr("Example:"));
  }
}

}  // namespace
}  // namespace regatta
