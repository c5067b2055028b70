#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "support/program_run.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

TEST(Quiet, EveryCommandHasTheFlag) {
  for (const app::Command& command : app::commands())
    EXPECT_THAT(run_regatta({std::string(command.name), "--help"}).out, HasSubstr("--quiet"));
}

TEST(Quiet, NothingIsPrinted) {
  const TemporaryFolder folder;
  const std::vector<std::string> train{"train",
                                       "--model",
                                       "tiny",
                                       "--data",
                                       "synth:1x8x8/4@40",
                                       "--batch",
                                       "4",
                                       "--steps",
                                       "3",
                                       "--test",
                                       "none",
                                       "--granularity",
                                       "fixed",
                                       "--out",
                                       folder.path() / "run",
                                       "--quiet"};
  for (const std::vector<std::string>& arguments :
       {train,
        {"train", "--resume", folder.path() / "run", "--steps", "5", "--quiet"},
        {"models", "--quiet"},
        {"data", "info", "digits-synth", "--quiet"}}) {
    const ProgramRun run = run_regatta(arguments);
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_EQ(run.out, "") << arguments[0];
    EXPECT_EQ(run.err, "") << arguments[0];
  }
}

TEST(Quiet, ErrorsAreStillPrinted) {
  const ProgramRun run = run_regatta({"models", "no-such-net", "--quiet"});
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("no-such-net"));
}

TEST(Quiet, AResultThatWasAskedForIsAllThereIs) {
  const ProgramRun run = run_regatta({"models", "--quiet", "--json", "-"});
  EXPECT_EQ(run.code, 0);
  EXPECT_TRUE(Json::parse(run.out).contains("models"));
  EXPECT_EQ(run.err, "");
}

TEST(Quiet, TheNextCallSpeaksAgain) {
  run_regatta({"models", "--quiet"});
  EXPECT_THAT(run_regatta({"models"}).out, HasSubstr("resnet50"));
}

}  // namespace
}  // namespace regatta
