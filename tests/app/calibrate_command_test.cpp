#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "base/json.h"
#include "support/program_run.h"
#include "support/scoped_variable.h"
#include "support/temporary_folder.h"
#include "tune/stored_profile.h"

namespace regatta {
namespace {

// With a place of its own for profiles.
class CalibrateCommand : public testing::Test {
 protected:
  static ProgramRun calibrate(const std::vector<std::string>& arguments) {
    std::vector<std::string> command{"calibrate"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return run_regatta(command);
  }

  const TemporaryFolder folder_;
  const ScopedVariable profiles_{"REGATTA_PROFILES", (folder_.path() / "profiles").string()};
};

TEST_F(CalibrateCommand, MeasuresStoresAndTells) {
  const std::string json = (folder_.path() / "result.json").string();
  const ProgramRun run = calibrate(
      {"--model", "tiny", "--batch", "4", "--workers", "2", "--seconds", "0.3", "--json", json});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find("conv forward"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("held out"), std::string::npos);
  const Json result = read_json(json);
  EXPECT_TRUE(std::filesystem::exists(result["profile"].get<std::string>()));
  bool found = false;
  for (const Json& cost : result["costs"]) {
    for (const Json& point : cost["points"]) {
      EXPECT_LE(point["low"], point["seconds"]);
      EXPECT_LE(point["seconds"], point["high"]);
    }
    found = found || cost["signature"].get<std::string>().find("| conv ") != std::string::npos;
  }
  EXPECT_TRUE(found);
}

TEST_F(CalibrateCommand, TellsOfAProfileThatNoLongerHolds) {
  const std::filesystem::path file = profile_store().file();
  std::filesystem::create_directory(file.parent_path());
  write_file(file, "{\"format\": 0}");
  const ProgramRun run =
      calibrate({"--model", "tiny", "--batch", "2", "--workers", "1", "--seconds", "0.1"});
  EXPECT_EQ(run.code, 0);
  EXPECT_NE(run.err.find(file.string() + "' is ignored"), std::string::npos) << run.err;
  std::string remark;
  EXPECT_FALSE(profile_store().load(&remark).empty());
  EXPECT_EQ(remark, "");
}

TEST_F(CalibrateCommand, MistakesAreToldInOneLine) {
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"--model", "tinny"},
                                                {"--model", "tiny", "--batch", "x"},
                                                {"--model", "tiny", "--teams", "1"},
                                                {"--model", "tiny", "--workers", "0"},
                                                {"--model", "tiny", "--batch", "0"}}) {
    const ProgramRun run = calibrate(wrong);
    EXPECT_EQ(run.code, 2) << wrong.back();
    EXPECT_EQ(std::ranges::count(run.err, '\n'), 1) << run.err;
  }
}

}  // namespace
}  // namespace regatta
