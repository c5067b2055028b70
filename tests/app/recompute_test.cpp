// --recompute of train and plan, and what plan says of memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/json.h"
#include "support/places.h"
#include "support/program_run.h"
#include "support/scoped_variable.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class RecomputeFlag : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return (folder_.path() / name).string(); }
  static ProgramRun run(const std::string& command, std::vector<std::string> more) {
    std::vector<std::string> arguments{command,
                                       "--model",
                                       "resnet20",
                                       "--input",
                                       "3x16x16",
                                       "--batch",
                                       "32",
                                       "--data",
                                       "synth:3x16x16/10@96",
                                       "--granularity",
                                       "fixed",
                                       "--workers",
                                       "2",
                                       "--chunks",
                                       "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_regatta(arguments);
  }

 private:
  TemporaryFolder folder_;
  ScopedVariable profiles_{"REGATTA_PROFILES", folder_.path().string()};
};

TEST_F(RecomputeFlag, TrainsToTheSameLossInLessMemory) {
  const auto train = [&](const std::string& name, std::vector<std::string> more) {
    more.insert(more.end(), {"--test", "none", "--steps", "3", "--deterministic", "--segments",
                             "block", "--out", at(name), "--json", at(name + ".json")});
    const ProgramRun done = run("train", more);
    EXPECT_EQ(done.code, 0) << done.err;
    return read_json(at(name + ".json"));
  };
  const Json kept = train("kept", {}), again = train("again", {"--recompute", "all"});
  EXPECT_EQ(again.at("epochs").at(0).at("train_loss"), kept.at("epochs").at(0).at("train_loss"));
  EXPECT_LT(again.at("buffer_bytes"), kept.at("buffer_bytes"));
  EXPECT_TRUE(again.at("plan").at("segments").at(0).at("recomputed"));
}

TEST_F(RecomputeFlag, GoesThroughAPlanFileWithItsTimeAndMemory) {
  const auto plan = [&](const std::string& name, std::vector<std::string> more) {
    more.insert(more.end(), {"--segments", "block", "--out", at(name)});
    const ProgramRun done = run("plan", more);
    EXPECT_EQ(done.code, 0) << done.err;
    EXPECT_THAT(done.out, AllOf(HasSubstr("values inside segments"), HasSubstr("parameters"),
                                HasSubstr("workspace of kernels")));
    return std::pair(done.out, read_json(at(name)));
  };
  const auto [kept_text, kept] = plan("kept.json", {});
  const auto [text, again] = plan("again.json", {"--recompute", "all"});
  EXPECT_THAT(text, HasSubstr("computed again in backward: "));
  const Json& memory = again.at("predicted").at("memories").at(0);
  EXPECT_EQ(memory.at("memory"), "node");
  EXPECT_LT(memory.at("bytes"), kept.at("predicted").at("memories").at(0).at("bytes"));
  EXPECT_EQ(memory.at("kinds").at("parameters"),
            kept.at("predicted").at("memories").at(0).at("kinds").at("parameters"));
  EXPECT_GT(again.at("predicted").at("step_s"), kept.at("predicted").at("step_s"));
  EXPECT_EQ(run_regatta({"simulate", at("again.json"), "--steps", "2"}).code, 0);
  EXPECT_EQ(run_regatta({"train", "--plan", at("again.json"), "--test", "none", "--steps", "2",
                         "--out", at("run")})
                .code,
            0);
}

TEST_F(RecomputeFlag, SaysWhatCannotBe) {
  const auto refusal = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--out", at("refused.json")});
    const ProgramRun done = run("plan", more);
    EXPECT_EQ(done.code, 2);
    return done.err;
  };
  EXPECT_THAT(refusal({"--recompute", "all", "--segments", "step"}), HasSubstr("one segment"));
  EXPECT_THAT(refusal({"--recompute", "some"}), HasSubstr("use auto, all, or segments"));
  EXPECT_THAT(refusal({"--recompute", "all", "--backward", "split"}),
              HasSubstr("use --backward whole"));
  EXPECT_THAT(refusal({"--recompute", "auto", "--platform",
                       (test_files() / "platforms/lab.json").string()}),
              HasSubstr("with --platform use all or segments"));
}

}  // namespace
}  // namespace regatta
