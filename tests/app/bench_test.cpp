// The benchmark runs its cells as processes of the program itself, so here the program is started.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/files.h"
#include "base/json.h"
#include "base/program.h"
#include "support/places.h"
#include "support/program_run.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

TEST(BenchScaling, MeasuresEveryCell) {
  const TemporaryFolder folder;
  const auto at = [&](const char* name) { return (folder.path() / name).string(); };
  const ProgramResult run = run_program(
      {regatta_program(), "bench", "scaling", "--model", "tiny", "--workers", "1,2", "--batch",
       "8,16", "--steps", "12", "--repeats", "1", "--json", at("s.json"), "--csv", at("s.csv")});
  ASSERT_EQ(run.status, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("tiny, 1x28x28, batch 16, regatta"));
  const Json json = read_json(at("s.json"));
  ASSERT_EQ(json.at("rows").size(), 4u);
  for (const Json& row : json["rows"]) {
    EXPECT_GT(row.at("images_per_s").get<double>(), 0);
    EXPECT_GT(row.at("speedup").get<double>(), 0);
    EXPECT_NEAR(row.at("efficiency").get<double>(),
                100 * row["speedup"].get<double>() / row.at("workers").get<double>(), 1e-6);
    EXPECT_GE(row.at("warmup_steps").get<double>(), 0);
  }
  EXPECT_TRUE(json.at("amdahl_serial_fraction").is_number());
  EXPECT_EQ(std::ranges::count(read_file(at("s.csv")), '\n'), 5);
}

TEST(BenchScaling, TellsWhatItsRunsComplainOf) {
  const ProgramResult run =
      run_program({regatta_program(), "bench", "scaling", "--model", "tiny", "--workers", "1",
                   "--scheduler", "eagre", "--steps", "10"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.output, HasSubstr("scheduler 'eagre' is unknown"));
}

TEST(BenchScaling, WrongListsAreRefusedBeforeAnythingRuns) {
  EXPECT_EQ(run_regatta({"bench", "scaling", "--model", "tiny", "--workers", "1,x"}).code, 2);
  EXPECT_EQ(run_regatta({"bench", "scaling", "--model", "tiny", "--workers", "0"}).code, 2);
  EXPECT_EQ(run_regatta({"bench", "scaling", "--model", "tiny", "--batch", "0"}).code, 2);
  const ProgramRun run = run_regatta({"bench", "scaling", "--model", "tinny"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("tiny"));
}

TEST(BenchFidelity, WrongListsAreRefusedBeforeAnythingIsMeasured) {
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"fidelity", "--models", "tiny,tinny", "--workers", "1"},
        std::vector<std::string>{"fidelity", "--models", "tiny", "--workers", "1,0"},
        std::vector<std::string>{"fidelity", "--models", ""},
        std::vector<std::string>{"granularity", "--model", "tiny,tinny", "--sizes", "28"}}) {
    std::vector<std::string> arguments{"bench"};
    arguments.insert(arguments.end(), wrong.begin(), wrong.end());
    const ProgramRun run = run_regatta(arguments);
    EXPECT_EQ(run.code, 2);
    EXPECT_EQ(std::ranges::count(run.err, '\n'), 1) << run.err;
  }
}

TEST(BenchFidelity, AnInputThatIsNoImageIsNamedByItsFlag) {
  const ProgramRun run = run_regatta({"bench", "fidelity", "--models", "tiny", "--input", "3x28"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("--input 3x28: write CxHxW"));
}

TEST(BenchCell, TimesEveryStep) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "c.json").string();
  const ProgramRun run = run_regatta({"bench", "cell", "--model", "tiny", "--batch", "4", "--steps",
                                      "9", "--workers", "2", "--json", file});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(read_json(file).at("step_s").size(), 9u);
}

TEST(BenchRuntime, CountsTasksByWorkersAndChunks) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "r.json").string();
  const ProgramRun run = run_regatta({"bench", "runtime", "--workers", "1,2", "--chunks", "2,8",
                                      "--kernels", "1e-5", "--seconds", "0.02", "--json", file});
  ASSERT_EQ(run.code, 0) << run.err;
  const Json rows = read_json(file).at("rows");
  ASSERT_EQ(rows.size(), 4u);
  for (const Json& row : rows) {
    EXPECT_GT(row.at("tasks_per_s").get<double>(), 0);
    // Workers cannot be held for longer than there is time.
    EXPECT_GT(row.at("in_kernels").get<double>(), 0);
    EXPECT_LE(row.at("in_kernels").get<double>(), 1);
    EXPECT_TRUE(row.contains("taken_by_others"));
  }
  EXPECT_GT(rows[1].at("tasks").get<int>(), rows[0].at("tasks").get<int>());
}

TEST(BenchRuntime, WrongFlagsAreRefused) {
  const auto refused = [](const char* flag, const char* value) {
    const ProgramRun run = run_regatta({"bench", "runtime", flag, value});
    EXPECT_EQ(run.code, 2);
    return run.err;
  };
  EXPECT_THAT(refused("--kernels", "fast"), HasSubstr("--kernels fast: use none, or the seconds"));
  EXPECT_THAT(refused("--kernels", "-1"), HasSubstr("from 0 to 1"));
  EXPECT_THAT(refused("--chunks", "0"), HasSubstr("--chunks 0: use 1 to"));
  EXPECT_THAT(refused("--workers", "1,9999"), HasSubstr("--workers 1,9999: use 1 to"));
}

TEST(Bench, SecondsThatAreNoNumberAreRefused) {
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"bench", "granularity", "--seconds", "nan"},
        std::vector<std::string>{"bench", "fidelity", "--calibrate", "inf"},
        std::vector<std::string>{"calibrate", "--model", "tiny", "--seconds", "nan"}}) {
    const ProgramRun run = run_regatta(wrong);
    EXPECT_EQ(run.code, 2);
    EXPECT_THAT(run.err, HasSubstr("is not a number from 0 to"));
  }
}

}  // namespace
}  // namespace regatta
