// --granularity, --explain and what is reported of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/json.h"
#include "support/program_run.h"
#include "support/scoped_variable.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

class GranularityCommands : public testing::Test {
 protected:
  std::string at(const char* name) const { return (folder_.path() / name).string(); }
  Json train(std::vector<std::string> more) {
    std::vector<std::string> arguments{"train",     "--model", "tiny",    "--data", "digits-synth",
                                       "--test",    "none",    "--batch", "16",     "--steps",
                                       "12",        "--out",   at("run"), "--json", at("r.json"),
                                       "--workers", "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramRun run = run_regatta(arguments);
    EXPECT_EQ(run.code, 0) << run.err;
    return read_json(at("r.json"));
  }

 private:
  TemporaryFolder folder_;
  ScopedVariable profiles_{"REGATTA_PROFILES", folder_.path().string()};
};

TEST_F(GranularityCommands, ARunTellsItsGranularityAndHowItsTimeWasSpent) {
  const Json result = train({});
  for (const char* key : {"segments", "chunks", "team", "workers"})
    EXPECT_GE(result.at("granularity").at(key).get<int>(), 1) << key;
  EXPECT_GT(result.at("predicted_step_s").get<double>(), 0);
  EXPECT_GT(result.at("measured_step_s").get<double>(), 0);
  const double idle = result.at("idle_share"), overhead = result.at("overhead_share");
  EXPECT_GE(idle, 0);
  EXPECT_GE(overhead, 0);
  EXPECT_LE(idle + overhead, 1);
  EXPECT_EQ(read_json(at("run/run.json")).at("plan").at("segments").size(),
            result["granularity"]["segments"].get<std::size_t>());
}

TEST_F(GranularityCommands, WhatIsFixedIsNotPredicted) {
  const Json result = train({"--granularity", "fixed", "--chunks", "3", "--segments", "op"});
  EXPECT_TRUE(result.at("predicted_step_s").is_null());
  EXPECT_EQ(result["granularity"]["chunks"], 3);
}

TEST_F(GranularityCommands, AFlagOverridesItsDimensionAlone) {
  EXPECT_EQ(train({"--chunks", "4"})["granularity"]["chunks"], 4);
}

TEST_F(GranularityCommands, DeterministicRunsAreNotChosenByMeasuredCosts) {
  EXPECT_TRUE(train({"--deterministic"}).at("predicted_step_s").is_null());
}

TEST_F(GranularityCommands, ExplainPrintsTheChoiceAndTrainsNothing) {
  const ProgramRun run =
      run_regatta({"train", "--model", "tiny", "--data", "digits-synth", "--batch", "16",
                   "--workers", "2", "--explain", "--out", at("run")});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("predicted"));
  EXPECT_THAT(run.out, HasSubstr("the first is taken"));
  EXPECT_FALSE(std::filesystem::exists(at("run")));
}

TEST_F(GranularityCommands, AnUnknownKindIsRefused) {
  const ProgramRun run =
      run_regatta({"train", "--model", "tiny", "--data", "digits-synth", "--granularity", "fine"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("use auto or fixed"));
}

TEST_F(GranularityCommands, TheBenchmarkSetsAutomaticAgainstFixed) {
  const ProgramRun run =
      run_regatta({"bench", "granularity", "--model", "tiny", "--sizes", "28", "--batch", "4",
                   "--workers", "2", "--seconds", "0.01", "--rounds", "1", "--json", at("g.json")});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("prediction error"));
  const Json cell = read_json(at("g.json")).at("cells").at(0);
  EXPECT_EQ(cell.at("fixed").size(), 9u);  // {op, block, step} x {1, 2, 4}
  EXPECT_GT(cell.at("ratio").get<double>(), 0);
  EXPECT_EQ(cell.at("automatic").at("rounds_s").size(), 4u) << "two a round, and as many again";
}

TEST_F(GranularityCommands, TheBenchmarkRefusesASizeBeforeItMeasuresOthers) {
  for (const auto& [flag, list] : {std::pair{"--sizes", "28,0"}, std::pair{"--batch", "4,0"}}) {
    const ProgramRun run = run_regatta({"bench", "granularity", flag, list});
    EXPECT_EQ(run.code, 2);
    EXPECT_THAT(run.err, HasSubstr(std::string(flag) + " " + list));
    EXPECT_EQ(run.out, "");
  }
}

TEST_F(GranularityCommands, TheBenchmarkSaysWhichCellsItLeftOut) {
  const ProgramRun run = run_regatta({"bench", "granularity", "--model", "tiny", "--sizes", "28",
                                      "--batch", "4", "--workers", "1", "--budget", "0"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("not run: the budget"));
}

}  // namespace
}  // namespace regatta
