// mpirun regatta train: one run of several processes.
#include "train/ranks.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/files.h"
#include "base/json.h"
#include "data/safetensors.h"
#include "support/mpirun.h"
#include "support/places.h"
#include "support/temporary_folder.h"
#include "train/checkpoint.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

class RankedProgram : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = mpi_missing(); !why.empty()) GTEST_SKIP() << why;
  }

  Words train(const std::string& out, const Words& more = {}) const {
    Words words{regatta_program().string(),
                "train",
                "--model",
                "lenet5",
                "--data",
                "synth:1x28x28/10@96",
                "--batch",
                "32",
                "--test",
                "none",
                "--out",
                (folder_.path() / out).string()};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  // The weights that a run left.
  std::string weights(const std::string& out) const {
    const fs::path checkpoint = latest_checkpoint(folder_.path() / out);
    return read_file(checkpoint / "model.safetensors");
  }
  Json run_json(const std::string& out) const {
    return read_json(folder_.path() / out / "run.json");
  }

  TemporaryFolder folder_;
};

TEST_F(RankedProgram, OneRunFolderAndOneResultWhateverTheRanks) {
  const std::string json = (folder_.path() / "result.json").string();
  const ProgramResult result =
      mpirun(2, train("run", {"--steps", "3", "--shares", "20,12", "--json", json}));
  ASSERT_EQ(result.status, 0) << result.output;
  EXPECT_NE(result.output.find("2 ranks:"), std::string::npos) << result.output;
  const Json plan = run_json("run")["plan"];
  ASSERT_EQ(plan["nodes"].size(), 2u);
  EXPECT_EQ(read_json(json)["steps"].size(), 3u);
  EXPECT_EQ(result.output.find("run folder"), result.output.rfind("run folder"));
}

TEST_F(RankedProgram, DeterministicWeightsAreThoseOfOneProcessAndAnyNumberCanGoOn) {
  const Words same{"--deterministic", "--chunks", "4"};
  const auto with = [&](Words more) {
    more.insert(more.end(), same.begin(), same.end());
    return more;
  };
  ASSERT_EQ(run_program(train("alone", with({"--steps", "6"}))).status, 0);
  const ProgramResult three = mpirun(3, train("ranks", with({"--steps", "3"})));
  ASSERT_EQ(three.status, 0) << three.output;
  const Words again{regatta_program().string(), "train", "--resume",
                    (folder_.path() / "ranks").string(), "--steps"};
  const auto until = [&](const char* step) {
    Words words = again;
    words.emplace_back(step);
    return words;
  };
  const ProgramResult two = mpirun(2, until("5"));
  ASSERT_EQ(two.status, 0) << two.output;
  const ProgramResult one = run_program(until("6"));
  ASSERT_EQ(one.status, 0) << one.output;
  EXPECT_EQ(weights("ranks"), weights("alone"));
}

TEST_F(RankedProgram, SharesFollowMeasuredSpeedUnlessTheyAreGiven) {
  const ProgramResult result = mpirun(2, train("run", {"--steps", "2"}));
  ASSERT_EQ(result.status, 0) << result.output;
  std::int64_t samples = 0;
  const Json run = run_json("run");
  for (const Json& node : run["plan"]["nodes"])
    for (const Json& chunk : node["groups"][0]["chunks"]) samples += chunk.get<std::int64_t>();
  EXPECT_EQ(samples, 32);
}

TEST_F(RankedProgram, AMistakeIsToldOnceAndLeavesNothing) {
  const ProgramResult result = mpirun(2, train("run", {"--shares", "20,20"}));
  EXPECT_EQ(result.status, 2);
  const std::string line = "regatta: --shares 20,20 are 40 samples, the batch 32";
  EXPECT_NE(result.output.find(line), std::string::npos) << result.output;
  EXPECT_EQ(result.output.find(line), result.output.rfind(line)) << result.output;
  EXPECT_FALSE(fs::exists(folder_.path() / "run"));
}

TEST_F(RankedProgram, ARankWithOtherSettingsIsNamed) {
  // Each rank is started by a shell, which tells the second another seed.
  const ProgramResult result =
      mpirun(2, {"sh", "-c", "exec \"$0\" \"$@\" --seed $((OMPI_COMM_WORLD_RANK + 1))",
                 regatta_program().string(), "train", "--model", "tiny", "--data", "digits-synth",
                 "--batch", "8", "--steps", "1", "--out", (folder_.path() / "run").string()});
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.output.find("regatta: rank 1 on "), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("the recipe"), std::string::npos) << result.output;
}

TEST_F(RankedProgram, DataMissingOnOneRankNamesIt) {
  const ProgramResult result =
      mpirun(2, {"sh", "-c",
                 "if [ $OMPI_COMM_WORLD_RANK = 1 ]; then set -- \"$@\" --data folder:/nowhere; "
                 "else set -- \"$@\" --data digits-synth; fi; exec \"$0\" \"$@\"",
                 regatta_program().string(), "train", "--model", "tiny", "--batch", "8", "--steps",
                 "1", "--out", (folder_.path() / "run").string()});
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.output.find("regatta: rank 1 on "), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("/nowhere"), std::string::npos) << result.output;
}

TEST(CpusOfRanks, AreSharedOutAndNeverNone) {
  const std::vector<int> cpus{2, 3, 4, 5, 9};
  EXPECT_EQ(cpus_of_rank(cpus, 0, 2), (std::vector<int>{2, 3}));
  EXPECT_EQ(cpus_of_rank(cpus, 1, 2), (std::vector<int>{4, 5, 9}));
  EXPECT_EQ(cpus_of_rank({7}, 2, 3), (std::vector<int>{7}));
  EXPECT_EQ(cpus_of_rank({0, 1}, 3, 4), (std::vector<int>{1}));
}

}  // namespace
}  // namespace regatta
