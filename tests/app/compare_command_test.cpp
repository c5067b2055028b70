// regatta compare, and the benches that lay predictions beside measurements. Times are this
// machine's own: what is asserted is that they are there and what they are of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "base/files.h"
#include "base/json.h"
#include "report/page.h"
#include "support/program_run.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

void train(const fs::path& out, std::vector<std::string> more) {
  std::vector<std::string> arguments{"train",
                                     "--model",
                                     "lenet5",
                                     "--data",
                                     "synth:1x28x28/10@480",
                                     "--test",
                                     "none",
                                     "--batch",
                                     "16",
                                     "--workers",
                                     "2",
                                     "--granularity",
                                     "fixed",
                                     "--segments",
                                     "block",
                                     "--chunks",
                                     "2",
                                     "--steps",
                                     "24",
                                     "--trace",
                                     "--out",
                                     out.string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const ProgramRun run = run_regatta(arguments);
  ASSERT_EQ(run.code, 0) << run.err;
}

std::set<std::string> quantities(const Json& result) {
  std::set<std::string> found;
  for (const Json& row : result.at("rows")) found.insert(row.at("quantity"));
  return found;
}

TEST(CompareCommand, TellsOfEveryQuantityWhatWasBoundPlannedSimulatedAndMeasured) {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "run", json = folder.path() / "compare.json";
  train(run, {});
  const ProgramRun compared = run_regatta({"compare", run.string(), "--json", json.string()});
  ASSERT_EQ(compared.code, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("what made the difference"));
  const Json result = read_json(json);
  const std::set<std::string> found = quantities(result);
  for (const char* each : {"step_s", "energy_j", "peak_bytes", "busy cpu 0", "busy cpu 1",
                           "phase forward", "phase backward", "phase reduce"})
    EXPECT_TRUE(found.contains(each)) << each;
  EXPECT_TRUE(std::ranges::any_of(
      found, [](const std::string& each) { return each.starts_with("sync reduce"); }));
  const Json& step = result["rows"][0];
  for (const char* column : {"planned", "simulated", "measured"}) {
    EXPECT_GT(step.at(column).get<double>(), 0) << column;
    // There is a bound where all was measured, and the profile is not outdated.
    if (!step.at("bound").is_null()) {
      EXPECT_LE(step["bound"].get<double>(), step[column].get<double>()) << column;
    }
  }
  // The buffers of a plan are known before it runs.
  for (const Json& row : result["rows"])
    if (row["quantity"] == "peak_bytes") {
      EXPECT_NEAR(row["simulated"].get<double>(), row["measured"].get<double>(),
                  0.05 * row["measured"].get<double>());
    }
  EXPECT_FALSE(result["differences"].empty());
  EXPECT_EQ(result["remark"], "");
  EXPECT_TRUE(fs::exists(run / "simulated.sqlite"));
  if (!report_page.empty()) {
    EXPECT_THAT(read_file(run / "report.html"), HasSubstr("cpu 1 simulated"));
  }
}

TEST(CompareCommand, OfAnotherSchedulerThePlacementIsReplayedAndThatIsSaid) {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  train(run, {"--scheduler", "lws"});
  const ProgramRun compared = run_regatta({"compare", run.string(), "--json", "-"});
  ASSERT_EQ(compared.code, 0) << compared.err;
  // With --json - standard output is the result's alone.
  const Json result = Json::parse(compared.out);
  EXPECT_THAT(result.at("remark").get<std::string>(), HasSubstr("StarPU's lws"));
  EXPECT_THAT(compared.err, HasSubstr("measured"));
}

TEST(CompareCommand, AssumedWattsAreNotCountedASecondTimeAsPowersOfWorkers) {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  train(run, {});
  const auto watts = [&] {  // as simulated
    const fs::path file = folder.path() / "result.json";
    const ProgramRun told = run_regatta({"compare", run.string(), "--json", file.string()});
    EXPECT_EQ(told.code, 0) << told.err;
    const Json result = read_json(file);
    double joules = 0, seconds = 1;
    for (const Json& row : result.at("rows")) {
      if (row.at("quantity") == "energy_j") joules = row.at("simulated");
      if (row.at("quantity") == "step_s") seconds = row.at("simulated");
    }
    return joules / seconds;
  };
  const double alike = watts();
  Json json = read_json(run / "run.json");
  json["plan"]["nodes"][0]["groups"][0]["powers"] =
      Json::array({{{"slow", 1}, {"watts", 90}}, {{"slow", 1}, {"watts", 20}}});
  std::ofstream(run / "run.json") << json.dump();
  EXPECT_GT(alike, 0);
  EXPECT_NEAR(watts() / alike, 1, 0.02);
}

TEST(CompareCommand, RefusesWhatIsNoRecordedRun) {
  const TemporaryFolder folder;
  const ProgramRun none = run_regatta({"compare", (folder.path() / "none").string()});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("is not the folder of a run"));
}

TEST(BenchFidelity, MeasuresAndSimulatesEveryCell) {
  const ProgramRun run =
      run_regatta({"bench", "fidelity", "--models", "tiny", "--workers", "1", "--batch", "8",
                   "--rounds", "2", "--seconds", "0", "--calibrate", "0", "--why", "--json", "-"});
  ASSERT_EQ(run.code, 0) << run.err;
  const Json result = Json::parse(run.out);
  ASSERT_EQ(result.at("cells").size(), 3u);
  for (const Json& cell : result["cells"]) {
    EXPECT_GT(cell.at("measured_step_s").get<double>(), 0);
    EXPECT_GT(cell.at("simulated_step_s").get<double>(), 0);
    EXPECT_EQ(cell.at("rounds_s").size(), 2u);
    for (const char* which : {"measured", "simulated"}) {
      const auto seconds = [&](const char* what) {
        return cell.at(std::string(which) + what).get<double>();
      };
      EXPECT_GT(seconds("_kernels_s"), 0);
      EXPECT_LT(seconds("_kernels_s"), 2 * seconds("_step_s")) << which;
      EXPECT_GT(seconds("_submission_s"), 0);
      EXPECT_GT(cell.at("phases").at("forward").at(std::string(which) + "_s").get<double>(), 0);
    }
  }
  EXPECT_TRUE(result.contains("kendall_tau"));
}

TEST(BenchFidelity, WithoutTimeNothingIsRunAndThatIsSaid) {
  const ProgramRun run =
      run_regatta({"bench", "fidelity", "--models", "tiny", "--workers", "1", "--budget", "0"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("not run: the budget"));
}

TEST(BenchPlacement, ComparesThreePlacements) {
  const ProgramRun run = run_regatta({"bench", "placement", "--model", "lenet5", "--input",
                                      "1x28x28", "--batch", "8", "--workers", "2", "--rounds", "1",
                                      "--seconds", "0", "--calibrate", "0", "--json", "-"});
  ASSERT_EQ(run.code, 0) << run.err;
  const Json result = Json::parse(run.out);
  ASSERT_EQ(result.at("cells").size(), 9u);
  EXPECT_EQ(result["cells"][0]["placement"], "dynamic");
  EXPECT_EQ(result["cells"][1]["placement"], "hybrid");
  EXPECT_EQ(result["cells"][2]["placement"], "static");
}

TEST(BenchUnequal, LaysEqualSharesBesideUnevenOnes) {
  const ProgramRun run = run_regatta(
      {"bench",    "unequal",   "--model",     "lenet5", "--input", "1x28x28",   "--batch",
       "60",       "--workers", "2",           "--slow", "1=3",     "--seconds", "0",
       "--rounds", "1",         "--calibrate", "0",      "--json",  "-"});
  ASSERT_EQ(run.code, 0) << run.err;
  const Json result = Json::parse(run.out);
  ASSERT_EQ(result.at("rows").size(), 2u);
  EXPECT_EQ(result["rows"][0]["chunks"], Json({30, 30}));
  const auto uneven = result["rows"][1]["chunks"].get<std::vector<int>>();
  EXPECT_GT(uneven[0], 2 * uneven[1]);
  // With equal shares the slow worker takes three times as long.
  EXPECT_GT(result["rows"][0]["simulated_apart"].get<double>(), 0.5);
  EXPECT_LT(result["rows"][1]["simulated_apart"].get<double>(),
            result["rows"][0]["simulated_apart"].get<double>());
}

TEST(BenchUnequal, ABatchWithLessThanAnImageForEachWorkerIsRefused) {
  const ProgramRun run = run_regatta({"bench", "unequal", "--batch", "1", "--workers", "2"});
  EXPECT_NE(run.code, 0);
  EXPECT_EQ(run.err, "regatta: --batch 1: each of 2 workers needs an image; use 2 or more\n");
}

}  // namespace
}  // namespace regatta
