// The commands `simulate` and `probe`, right and wrong input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/files.h"
#include "base/json.h"
#include "platform/platform.h"
#include "report/text.h"
#include "support/places.h"
#include "support/program_run.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::filesystem::path platforms = test_files() / "platforms";

std::string platform(const std::string& name) { return (platforms / (name + ".json")).string(); }

TEST(SimulateCommand, TellsAStepsTimeJoulesAndMemory) {
  const TemporaryFolder folder;
  const std::string json = (folder.path() / "result.json").string();
  const std::string run = (folder.path() / "run").string();
  const ProgramRun done =
      run_regatta({"simulate", "--model", "lenet5", "--batch", "64", "--platform", platform("lab"),
                   "--shares", "speed", "--steps", "3", "--json", json, "--out", run});
  ASSERT_EQ(done.code, 0) << done.err;
  const Json result = read_json(json);
  EXPECT_GT(result["step_s"].get<double>(), 0);
  EXPECT_GT(result["energy_j"].get<double>(), 0);
  EXPECT_EQ(result["batch"], 64);
  EXPECT_EQ(result["groups"].size(), 4u);
  EXPECT_GT(result["groups"][0]["busy_s"].get<double>(), 0);
  EXPECT_GT(result["groups"][0]["peak_bytes"].get<double>(), 0);
  EXPECT_GT(result["simulated_tasks"].get<int>(), 0);
  const ProgramRun traced = run_regatta({"trace", run});
  EXPECT_EQ(traced.code, 0);
  for (const char* text : {"oak · cpu 0", "\nworker ", "busiest of 8 links", "oak → switch"})
    EXPECT_THAT(traced.out, HasSubstr(text));
  EXPECT_EQ(run_regatta({"doctor", run}).code, 0);
  EXPECT_EQ(run_regatta({"simulate", run, "--platform", platform("lab")}).code, 0);
}

// The first steps fill the pipeline and the last ones drain it: no figure may contain them.
TEST(SimulateCommand, ItsFiguresAreThoseOfThePageAndOfTheTrace) {
  const TemporaryFolder folder;
  const std::string json = (folder.path() / "result.json").string();
  const fs::path run = folder.path() / "run";
  const ProgramRun done = run_regatta({"simulate", "--model", "resnet18", "--input", "3x64x64",
                                       "--batch", "256", "--platform", platform("lab"), "--steps",
                                       "5", "--json", json, "--out", run.string()});
  ASSERT_EQ(done.code, 0) << done.err;
  const Json result = read_json(json);
  const double joules = result.at("energy_j"), step = result.at("step_s");
  EXPECT_THAT(done.out, HasSubstr(formatted("%.4g J a step", joules)));
  const std::string page = read_file(run / "report.html");
  EXPECT_THAT(page, HasSubstr("{\"label\":\"energy\",\"value\":\"" + number_text(joules) +
                              "\",\"unit\":\"J a step\""));
  EXPECT_THAT(page,
              HasSubstr("{\"label\":\"throughput\",\"value\":\"" + number_text(256 / step) + "\""));
  const ProgramRun traced = run_regatta({"trace", run.string(), "--json", json});
  ASSERT_EQ(traced.code, 0) << traced.err;
  const Json trace = read_json(json);
  EXPECT_NEAR(trace.at("joules").get<double>() / trace.at("steps").get<double>(), joules,
              1e-6 * joules);
}

// Two sites over a slow link: a ring crosses it with every step, sums of sites cross it once.
TEST(SimulateCommand, TheDoctorFindsTheUpdateThatSuitsTheLinks) {
  const TemporaryFolder folder;
  const std::string run = (folder.path() / "run").string();
  const std::string json = (folder.path() / "doctor.json").string();
  const std::vector<std::string> simulated{
      "simulate", "--model", "lenet5", "--platform", platform("two-sites"), "--steps", "3"};
  std::vector<std::string> recorded = simulated;
  recorded.insert(recorded.end(), {"--out", run});
  ASSERT_EQ(run_regatta(recorded).code, 0);
  const ProgramRun done = run_regatta({"doctor", run, "--json", json});
  ASSERT_EQ(done.code, 0) << done.err;
  const Json best = read_json(json)["findings"][0];
  EXPECT_EQ(best["flag"], "--update hierarchical") << done.out;
  EXPECT_TRUE(best["predicted"].get<bool>());
  // It saves as much as it says.
  const auto step_of = [&](const std::string& update) {
    std::vector<std::string> arguments = simulated;
    arguments.insert(arguments.end(), {"--update", update, "--json", json});
    EXPECT_EQ(run_regatta(arguments).code, 0);
    return read_json(json)["step_s"].get<double>();
  };
  EXPECT_NEAR(best["gain"].get<double>(), 1 - step_of("hierarchical") / step_of("ring"), 1e-6);
}

TEST(SimulateCommand, OfAThousandNodesIsTracedOnAScreen) {
  const TemporaryFolder folder;
  const std::string run = (folder.path() / "run").string();
  ASSERT_EQ(run_regatta({"simulate", "--model", "lenet5", "--platform", platform("thousand"),
                         "--steps", "2", "--out", run})
                .code,
            0);
  const ProgramRun traced = run_regatta({"trace", run});
  ASSERT_EQ(traced.code, 0) << traced.err;
  EXPECT_LT(std::ranges::count(traced.out, '\n'), 60);
  EXPECT_THAT(traced.out, HasSubstr("between the busiest and the idlest; --json FILE has all"));
}

// Cores and a GPU share each batch, on a platform that has both.
TEST(SimulateCommand, APlanWithAGpuIsReadByAllCommands) {
  const TemporaryFolder folder;
  const std::string plan = (folder.path() / "plan.json").string();
  const std::string run = (folder.path() / "run").string();
  const std::string json = (folder.path() / "compared.json").string();
  const ProgramRun planned =
      run_regatta({"plan", "--model", "lenet5", "--batch", "256", "--platform",
                   platform("gpu-and-old"), "--devices", "cpu,cuda", "--explain", "--out", plan});
  ASSERT_EQ(planned.code, 0) << planned.err;
  EXPECT_THAT(planned.out, HasSubstr(": compute: "));
  ASSERT_EQ(run_regatta({"simulate", plan, "--platform", platform("gpu-and-old"), "--steps", "6",
                         "--out", run})
                .code,
            0);
  for (const char* command : {"trace", "doctor", "report"}) {
    const ProgramRun done = run_regatta({command, run});
    EXPECT_EQ(done.code, 0) << command << done.err;
  }
  const ProgramRun compared = run_regatta({"compare", run, "--json", json});
  ASSERT_EQ(compared.code, 0) << compared.err;
  const Json row = read_json(json)["rows"][0];
  EXPECT_EQ(row["quantity"], "step_s");
  EXPECT_NEAR(row["simulated"].get<double>(), row["measured"].get<double>(),
              0.05 * row["measured"].get<double>());
}

// One box of seven GPUs, six of them on slow slots, as both commands see it.
TEST(SimulateCommand, MeansTheSameAsPlan) {
  const TemporaryFolder folder;
  const std::string json = (folder.path() / "result.json").string();
  const std::string plan = (folder.path() / "plan.json").string();
  double slowest = 0, fastest = 1e9;
  for (const char* update : {"ring", "server:cpu"})
    for (const char* norm : {"whole", "group:32"}) {
      const std::vector<std::string> what{
          "--model",  "resnet50", "--batch",  "224",   "--platform",   platform("seven-gpu-box"),
          "--update", update,     "--shares", "equal", "--batch-norm", norm};
      std::vector<std::string> simulate{"simulate", "--steps", "3", "--json", json};
      std::vector<std::string> make{"plan",      "--out",     plan,  "--input",
                                    "3x224x224", "--classes", "1000"};
      simulate.insert(simulate.end(), what.begin(), what.end());
      make.insert(make.end(), what.begin(), what.end());
      const ProgramRun simulated = run_regatta(simulate), planned = run_regatta(make);
      ASSERT_EQ(simulated.code, 0) << simulated.err;
      ASSERT_EQ(planned.code, 0) << planned.err;
      const double step = read_json(json)["step_s"];
      EXPECT_EQ(read_json(json)["batch"], 224);
      EXPECT_EQ(read_json(json)["ranks"], 7);
      EXPECT_NEAR(read_json(plan)["predicted"]["step_s"].get<double>(), step, 0.02 * step)
          << update << ", " << norm;
      EXPECT_EQ(read_json(plan)["plan"]["nodes"].size(), 7u);
      slowest = std::max(slowest, step);
      fastest = std::min(fastest, step);
    }
  EXPECT_GT(slowest, 1.02 * fastest) << "updates and meetings count in both";
}

TEST(SimulateCommand, SaysWhatIsWrong) {
  const auto refusal = [](std::vector<std::string> arguments) {
    const ProgramRun done = run_regatta(std::move(arguments));
    EXPECT_EQ(done.code, 2);
    return done.err;
  };
  EXPECT_THAT(refusal({"simulate"}), HasSubstr("simulate what?"));
  EXPECT_THAT(
      refusal({"simulate", "--model", "tiny", "--platform", platform("lab"), "--ranks", "9"}),
      HasSubstr("has room for 4"));
  EXPECT_THAT(refusal({"simulate", "--model", "tiny", "--update", "rign"}), HasSubstr("ring"));
  const TemporaryFolder folder;
  const std::string bad = (folder.path() / "bad.json").string();
  write_file(bad,
             R"({"regatta_platform": 1, "name": "x", "nodes": [{"name": "n", "groups": []}]})");
  EXPECT_THAT(refusal({"simulate", "--model", "tiny", "--platform", bad}),
              HasSubstr("nodes[0].groups: there is none"));
}

// A plan's own choices would win over these flags without a word.
TEST(SimulateCommand, FlagsThatMakeAPlanAreRefusedBesideOne) {
  const TemporaryFolder folder;
  const std::string plan = (folder.path() / "plan.json").string();
  ASSERT_EQ(run_regatta({"plan", "--model", "tiny", "--batch", "8", "--platform", platform("lab"),
                         "--out", plan})
                .code,
            0);
  const std::vector<std::string> simulate{"simulate", plan, "--platform", platform("lab")};
  for (const auto& [flag, value] : {std::pair{"--update", "ring"},
                                    {"--chunks", "2"},
                                    {"--batch", "16"},
                                    {"--batch-norm", "whole"},
                                    {"--wire-precision", "bf16"},
                                    {"--devices", "cpu"},
                                    {"--input", "1x28x28"},
                                    {"--classes", "10"},
                                    {"--data", "mnist"},
                                    {"--workers", "1"},
                                    {"--team", "1"},
                                    {"--segments", "step"},
                                    {"--reduction", "slots"},
                                    {"--backward", "split"},
                                    {"--ranks", "1"},
                                    {"--shares", "equal"},
                                    {"--model", "tiny"}}) {
    std::vector<std::string> arguments = simulate;
    arguments.insert(arguments.end(), {flag, value});
    const ProgramRun done = run_regatta(arguments);
    EXPECT_EQ(done.code, 2) << flag;
    EXPECT_THAT(done.err, HasSubstr("drop " + std::string(flag) + ", or drop the plan"));
    EXPECT_EQ(std::ranges::count(done.err, '\n'), 1) << done.err;
  }
  // Flags that concern the platform and the simulation still take effect.
  std::vector<std::string> arguments = simulate;
  arguments.insert(arguments.end(), {"--server-sends", "step", "--images-per-s", "100", "--steps",
                                     "2", "--replicas", "2", "--seed", "3"});
  const ProgramRun done = run_regatta(arguments);
  EXPECT_EQ(done.code, 0) << done.err;
}

TEST(ProbeCommand, TranslatesPlatforms) {
  const TemporaryFolder folder;
  const std::string xml = (folder.path() / "two.xml").string();
  ASSERT_EQ(run_regatta({"probe", "--from", platform("two-sites"), "--out", xml}).code, 0);
  EXPECT_EQ(read_platform(xml).node_count(), 16);
}

}  // namespace
}  // namespace regatta
