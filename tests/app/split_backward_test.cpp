// --backward of train, plan and simulate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/files.h"
#include "base/json.h"
#include "support/places.h"
#include "support/program_run.h"
#include "support/scoped_variable.h"
#include "support/temporary_folder.h"
#include "trace/store.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

class BackwardFlag : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return (folder_.path() / name).string(); }
  ProgramRun run(const std::string& command, std::vector<std::string> more) {
    std::vector<std::string> arguments{command,   "--model", "resnet20", "--input",
                                       "3x16x16", "--batch", "64"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_regatta(arguments);
  }
  Json train(const std::string& name, std::vector<std::string> more) {
    std::vector<std::string> arguments{"--data",    "synth:3x16x16/10@192",
                                       "--test",    "none",
                                       "--steps",   "3",
                                       "--out",     at(name),
                                       "--json",    at(name + ".json"),
                                       "--trace",   "--deterministic",
                                       "--chunks",  "2",
                                       "--workers", "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramRun done = run("train", arguments);
    EXPECT_EQ(done.code, 0) << done.err;
    return read_json(at(name + ".json"));
  }

 private:
  TemporaryFolder folder_;
  ScopedVariable profiles_{"REGATTA_PROFILES", folder_.path().string()};
};

TEST_F(BackwardFlag, TrainsToTheSameLossAndIsRecorded) {
  const Json whole = train("whole", {}), split = train("split", {"--backward", "split"});
  EXPECT_EQ(split.at("epochs").at(0).at("train_loss"), whole.at("epochs").at(0).at("train_loss"));
  EXPECT_FALSE(read_json(at("whole/run.json")).at("plan").contains("backward"));
  EXPECT_EQ(read_json(at("split/run.json")).at("plan").at("backward"), "split");
  const trace::Record record = trace::read_store(at("split/trace.sqlite"));
  EXPECT_TRUE(std::ranges::any_of(record.tasks, [&](const trace::Task& task) {
    return record.kind_of(task).phases.starts_with("weight_gradient");
  }));
  EXPECT_EQ(run_regatta({"trace", at("split")}).code, 0);
  EXPECT_EQ(run_regatta({"doctor", at("split")}).code, 0);
}

TEST_F(BackwardFlag, GoesThroughAPlanFileToTrainingAndSimulation) {
  const ProgramRun planned =
      run("plan", {"--backward", "split", "--chunks", "2", "--workers", "2", "--granularity",
                   "fixed", "--data", "synth:3x16x16/10@192", "--out", at("plan.json")});
  ASSERT_EQ(planned.code, 0) << planned.err;
  EXPECT_EQ(read_json(at("plan.json")).at("plan").at("backward"), "split");
  const ProgramRun followed = run_regatta(
      {"train", "--plan", at("plan.json"), "--test", "none", "--steps", "2", "--out", at("run")});
  EXPECT_EQ(followed.code, 0) << followed.err;
  EXPECT_EQ(read_json(at("run/run.json")).at("plan").at("backward"), "split");
  EXPECT_EQ(run_regatta({"simulate", at("plan.json"), "--steps", "2"}).code, 0);
}

TEST_F(BackwardFlag, IsSimulatedOverNodes) {
  const std::string lab = (test_files() / "platforms/lab.json").string();
  const auto tasks = [&](const std::string& backward) {
    const ProgramRun done =
        run("simulate", {"--platform", lab, "--chunks", "2", "--steps", "2", "--backward", backward,
                         "--json", at("simulated.json")});
    EXPECT_EQ(done.code, 0) << done.err;
    return read_json(at("simulated.json")).at("simulated_tasks").get<int>();
  };
  EXPECT_GT(tasks("split"), tasks("whole"));
}

TEST_F(BackwardFlag, OtherWordsAndGpusAreRefused) {
  const ProgramRun word = run("plan", {"--backward", "halved", "--out", at("plan.json")});
  EXPECT_EQ(word.code, 2);
  EXPECT_THAT(word.err, HasSubstr("--backward"));
  const std::string gpus = (test_files() / "platforms/seven-gpu-box.json").string();
  const ProgramRun gpu =
      run("plan", {"--platform", gpus, "--backward", "split", "--out", at("plan.json")});
  EXPECT_EQ(gpu.code, 2);
  EXPECT_THAT(gpu.err, HasSubstr("use --backward whole"));
  EXPECT_FALSE(std::filesystem::exists(at("plan.json")));
}

}  // namespace
}  // namespace regatta
