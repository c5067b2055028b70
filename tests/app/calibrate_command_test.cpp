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
  EXPECT_NE(run.err.find("measuring what the work of tiny at 1x28x28, batch 4 costs here\n"),
            std::string::npos)
      << run.err;
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

// tiny and lenet5, of the default models, have no batch norm; resnet18 has.
TEST_F(CalibrateCommand, GroupsOfBatchNormConcernTheDefaultModelsThatHaveOne) {
  const auto run = [](const std::string& group, const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"--batch",   "2",    "--workers",    "1",
                                       "--seconds", "0.01", "--batch-norm", group};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return calibrate(arguments);
  };
  const std::vector<std::string> small{"--input", "3x32x32"};
  const ProgramRun all = run("group:2", small);
  EXPECT_EQ(all.code, 0) << all.err;
  // Its last images have one pixel.
  const ProgramRun single = run("group:1", small);
  EXPECT_EQ(single.code, 2);
  EXPECT_NE(single.err.find("one value per channel"), std::string::npos) << single.err;
  EXPECT_NE(single.err.find("work of lenet5"), std::string::npos) << single.err;
  const ProgramRun tiny = run("group:2", {"--model", "tiny"});
  EXPECT_EQ(tiny.code, 2);
  EXPECT_NE(tiny.err.find("model 'tiny' has no batch norm: drop it"), std::string::npos)
      << tiny.err;
}

// Two nodes of so many cores like this machine's, from its own profile.
Json two_like_this(int cores) {
  const Json group{{"name", "cpu"},
                   {"kind", "cpu"},
                   {"count", cores},
                   {"memory_bytes", std::int64_t{1} << 33},
                   {"watts", {{"idle", 1}, {"active", 5}}},
                   {"costs", {{"profile", "here"}}}};
  const Json node{{"name", "n"}, {"count", 2}, {"groups", Json::array({group})}};
  return {{"regatta_platform", 1},
          {"name", "two"},
          {"nodes", Json::array({node})},
          {"network", {{"topology", "star"}, {"bandwidth", 1e9}, {"latency", 1e-6}}}};
}

class CalibratedPlan : public CalibrateCommand {
 protected:
  void calibrated(int cores, const std::vector<std::string>& more,
                  const std::string& batch = "8") const {
    std::vector<std::string> arguments{"--model",   "resnet20", "--input",   "3x8x8",
                                       "--batch",   batch,      "--workers", std::to_string(cores),
                                       "--seconds", "0.1",      "--json",    path("costs.json")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramRun run = calibrate(arguments);
    EXPECT_EQ(run.code, 0) << run.err;
  }
  std::string planned(int cores, const std::vector<std::string>& more) const {
    write_file(path("two.json"), two_like_this(cores).dump());
    std::vector<std::string> arguments{
        "plan", "--model",    "resnet20",       "--input", "3x8x8",          "--batch",
        "16",   "--platform", path("two.json"), "--out",   path("plan.json")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramRun run = run_regatta(arguments);
    EXPECT_EQ(run.code, 0) << run.err;
    return run.out;
  }
  std::string path(const char* name) const { return (folder_.path() / name).string(); }
};

TEST_F(CalibratedPlan, RestsOnMeasurementsOnceCalibrateHadTheFlagsThatItTells) {
  const std::vector<std::string> recipe{"--batch-norm", "group:4", "--optimizer", "adam"};
  calibrated(1, {});
  const std::string before = planned(1, recipe);
  EXPECT_NE(before.find("of the predicted work is guessed; on its machine, regatta calibrate "
                        "--model resnet20 --input 3x8x8 --batch 16 --batch-norm group:4 "
                        "--optimizer adam measures it"),
            std::string::npos)
      << before;
  calibrated(1, recipe);
  const std::string after = planned(1, recipe);
  EXPECT_NE(after.find("all of the predicted work was measured"), std::string::npos) << after;
}

TEST_F(CalibratedPlan, HasCoresWorkOneByOneWhereOnlyThatWasMeasured) {
  calibrated(2, {});
  const std::string told = planned(2, {});
  EXPECT_NE(told.find("all of the predicted work was measured"), std::string::npos) << told;
  const Json file = read_json(path("plan.json"));
  ASSERT_EQ(file["plan"]["nodes"].size(), 2u);
  for (const Json& node : file["plan"]["nodes"]) EXPECT_EQ(node["groups"][0].value("team", 1), 1);
}

TEST_F(CalibratedPlan, OfATeamIsMeasuredAsSeveralNodesCutItToo) {
  calibrated(2, {"--teams", "2"}, "2");
  int statistics = 0;
  const Json result = read_json(path("costs.json"));
  for (const Json& cost : result["costs"]) {
    const std::string signature = cost["signature"];
    if (signature.find(" team2 | batch_norm") != std::string::npos &&
        signature.ends_with("| statistics"))
      ++statistics;
  }
  EXPECT_GT(statistics, 0);
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
