// What a traced run leaves for people to look at.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "report/page.h"
#include "support/program_run.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

std::string event_bytes(const fs::path& folder) {
  std::string bytes;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().filename().string().starts_with("events.out.tfevents"))
      bytes += read_file(entry.path());
  return bytes;
}

std::vector<std::string> training(const std::string& out, std::vector<std::string> more = {}) {
  std::vector<std::string> flags{"train",   "--model",   "tiny",    "--data", "digits-synth",
                                 "--batch", "8",         "--steps", "12",     "--test",
                                 "none",    "--workers", "2",       "--out",  out};
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

TEST(ReportCommand, ATracedRunLeavesItsTimelineAndTellsTensorBoard) {
  if (report_page.empty()) GTEST_SKIP() << "built without the page";
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  ASSERT_EQ(run_regatta(training(run.string(), {"--trace"})).code, 0);
  EXPECT_THAT(read_file(run / "report.html"), HasSubstr("\"task.start\""));
  const std::string events = event_bytes(run);
  for (const char* tag : {"train/images_per_s", "trace/idle_share", "trace/joules", "plan"})
    EXPECT_THAT(events, HasSubstr(tag));
}

TEST(ReportCommand, ARunWithoutATraceLeavesItsCurves) {
  if (report_page.empty()) GTEST_SKIP() << "built without the page";
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  ASSERT_EQ(run_regatta(training(run.string())).code, 0);
  const std::string page = read_file(run / "report.html");
  EXPECT_THAT(page, HasSubstr("\"step.loss\""));
  EXPECT_THAT(page, Not(HasSubstr("\"task.start\"")));

  const std::string elsewhere = (folder.path() / "again.html").string();
  const ProgramRun again = run_regatta({"report", run.string(), "--out", elsewhere});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(read_file(elsewhere), page);
}

TEST(ReportCommand, OfSomethingElseIsRefused) {
  const TemporaryFolder folder;
  const ProgramRun run = run_regatta({"report", folder.path().string()});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("is not the folder of a run"));
}

TEST(PerfModels, OfStarPULearnWithoutHarm) {
  for (const char* kind : {"history", "regression"}) {
    const TemporaryFolder folder;
    const ProgramRun run = run_regatta(
        training((folder.path() / "run").string(), {"--scheduler", "dmda", "--perf-model", kind}));
    EXPECT_EQ(run.code, 0) << kind << ": " << run.err;
  }
  EXPECT_THAT(
      run_regatta({"train", "--model", "tiny", "--data", "digits-synth", "--perf-model", "histroy"})
          .err,
      HasSubstr("did you mean 'history'?"));
}

}  // namespace
}  // namespace regatta
