// --precision bf16 on CPUs, from the commands: a run, what is done with it afterwards, and its
// costs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/json.h"
#include "support/bf16_here.h"
#include "support/program_run.h"
#include "support/scoped_variable.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Bf16Commands, ARunIsTrainedResumedAndEvaluated) {
  SKIP_WITHOUT_BF16();
  const TemporaryFolder folder;
  const std::string run = (folder.path() / "run").string();
  const ProgramRun trained = run_regatta(
      {"train",   "--model",     "tiny",      "--data", "digits-synth",  "--batch", "16",
       "--steps", "4",           "--workers", "2",      "--granularity", "fixed",   "--chunks",
       "2",       "--no-refine", "--test",    "none",   "--precision",   "bf16",    "--out",
       run});
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_EQ(read_json(folder.path() / "run/run.json").at("recipe").at("precision"), "bf16");
  const ProgramRun resumed = run_regatta({"train", "--resume", run, "--steps", "6"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  const ProgramRun evaluated = run_regatta({"eval", run, "--workers", "1"});
  EXPECT_EQ(evaluated.code, 0) << evaluated.err;
}

// A plan in bf16 must not be made by what fp32 costs.
TEST(Bf16Commands, CostsAreMeasuredAndKeptForThePrecision) {
  SKIP_WITHOUT_BF16();
  const TemporaryFolder folder;
  const ScopedVariable profiles("REGATTA_PROFILES", (folder.path() / "profiles").string());
  const std::string file = (folder.path() / "costs.json").string();
  const ProgramRun run =
      run_regatta({"calibrate", "--model", "tiny", "--batch", "8", "--workers", "1", "--seconds",
                   "0.05", "--precision", "bf16", "--json", file});
  ASSERT_EQ(run.code, 0) << run.err;
  const std::string costs = read_file(file);
  EXPECT_THAT(costs, HasSubstr(" bf16 | conv"));
  EXPECT_THAT(costs, Not(HasSubstr(" fp32 | conv")));
}

}  // namespace
}  // namespace regatta
