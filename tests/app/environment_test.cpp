// The environment a cluster gives: variables of OpenMP, and fewer CPUs than there are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <array>

#include "app/cpu_use.h"
#include "app/openmp_environment.h"
#include "base/files.h"
#include "base/json.h"
#include "base/program.h"
#include "exec/versions.h"
#include "platform/machine.h"
#include "support/places.h"
#include "support/program_process.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(OpenMpVariables, AreRemovedAndOthersStay) {
  std::array<std::string, 5> texts{"HOME=/", "OMP_PLACES=cores", "KMP_AFFINITY=compact",
                                   "GOMP_CPU_AFFINITY=0", "COMP_X=1"};
  std::array<char*, 6> environment{};
  for (std::size_t i = 0; i < texts.size(); ++i) environment[i] = texts[i].data();
  std::array<const char*, 2> removed{};
  app::remove_openmp_variables(environment.data(), removed);
  EXPECT_STREQ(environment[0], "HOME=/");
  EXPECT_STREQ(environment[1], "COMP_X=1");
  EXPECT_EQ(environment[2], nullptr);
  EXPECT_STREQ(removed[0], "OMP_PLACES=cores");
  EXPECT_STREQ(removed[1], "KMP_AFFINITY=compact");
}

TEST(CpuLine, SaysHowManyCpusAreUsedAndWhyNotAll) {
  EXPECT_EQ(app::cpu_line(4, {4, 4, 0}, "", {}), "using 4 of 4 CPUs");
  EXPECT_EQ(app::cpu_line(2, {16, 8, 2}, "", {}),
            "using 2 of 16 CPUs: the affinity mask allows 8, the control group's quota allows 2");
  EXPECT_EQ(app::cpu_line(1, {4, 4, 0}, "--workers 1", {}), "using 1 of 4 CPUs: --workers 1");
  EXPECT_EQ(app::cpu_line(8, {4, 4, 0}, "--workers 8", {}),
            "using 4 of 4 CPUs: --workers 8 makes 8 threads share them");
  EXPECT_THAT(app::cpu_line(4, {4, 4, 0}, "", {"OMP_NUM_THREADS=1"}),
              HasSubstr("OMP_NUM_THREADS=1 has no say (--workers has)"));
}

class Environment : public testing::Test {
 protected:
  // Trains a few steps in a process of its own; run.json of it.
  Json trained() {
    ProgramProcess process(
        {"train", "--model", "tiny", "--data", "synth:1x12x12/3@40", "--batch", "8",
         "--granularity", "fixed", "--chunks", std::to_string(available_cpus()), "--test", "none",
         "--steps", "3", "--out", (folder.path() / "run").string()},
        said);
    EXPECT_EQ(process.wait(), 0) << read_file(said);
    return read_json(folder.path() / "run" / "run.json");
  }

  const TemporaryFolder folder;
  const fs::path said = folder.path() / "said";
};

// Sets variables for as long as it lives.
class Variables {
 public:
  explicit Variables(std::vector<std::pair<const char*, const char*>> set) : set_(std::move(set)) {
    for (const auto& [name, value] : set_) ::setenv(name, value, 1);
  }
  ~Variables() {
    for (const auto& [name, value] : set_) ::unsetenv(name);
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;

 private:
  std::vector<std::pair<const char*, const char*>> set_;
};

TEST_F(Environment, VariablesOfOpenMpTakeNoCpusAway) {
  const int cpus = available_cpus();
  const Variables cluster({{"OMP_PROC_BIND", "true"},
                           {"OMP_PLACES", "cores"},
                           {"OMP_NUM_THREADS", "1"},
                           {"OMP_DYNAMIC", "true"},
                           {"OMP_THREAD_LIMIT", "1"},
                           {"GOMP_CPU_AFFINITY", "0"},
                           {"KMP_AFFINITY", "compact"}});
  const Json run = trained();
  EXPECT_EQ(run.at("machine").at("cpus"), cpus);
  EXPECT_EQ(run.at("machine").at("libraries"), Json(library_versions()));
  EXPECT_EQ(run.at("plan").at("nodes")[0].at("groups")[0].at("workers"), cpus);
  EXPECT_THAT(read_file(said), AllOf(StartsWith("using " + std::to_string(cpus) + " of "),
                                     HasSubstr("OMP_NUM_THREADS=1 has no say")));
}

// A machine must not be asked for so much memory: the answer comes before anything is allocated or
// measured.
TEST_F(Environment, ARunThatALimitOfMemoryForbidsIsRefusedInOneLine) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need address space without a limit";
#endif
  for (const char* granularity : {"fixed", "auto"}) {
    const std::string command =
        "ulimit -v 8000000; " + regatta_program().string() +
        " train --model resnet50 --data imagenet-synth --batch 512 --test none --granularity " +
        granularity + " --out " + (folder.path() / "large").string();
    const ProgramResult refused = run_program({"sh", "-c", command});
    EXPECT_EQ(refused.status, 2);
    EXPECT_EQ(std::ranges::count(refused.output, '\n'), 1) << refused.output;
    EXPECT_THAT(refused.output,
                AllOf(StartsWith("regatta: --batch 512 needs "),
                      HasSubstr("ulimit -v with 8192 MB"), HasSubstr("or less fits")));
    EXPECT_FALSE(fs::exists(folder.path() / "large"));
  }
}

// StarPU aborts where it gets no thread and no memory, in many ways. Below 140 MB the program's
// libraries are not even loaded.
TEST_F(Environment, WithHardlyAnyAddressSpaceARunEndsInOneLineOrWorks) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need address space without a limit";
#endif
  const std::string train =
      regatta_program().string() +
      " train --model tiny --data synth:1x8x8/3@20 --steps 1 --batch 8 --workers 2 --out ";
  int refused = 0, trained = 0;
  for (int kilobytes = 140'000; kilobytes <= 320'000; kilobytes += 15'000) {
    const std::string out = (folder.path() / std::to_string(kilobytes)).string();
    const ProgramResult run =
        run_program({"sh", "-c", "ulimit -v " + std::to_string(kilobytes) + "; " + train + out});
    if (run.output.find("error while loading shared libraries") != std::string::npos) continue;
    if (run.status == 0) {
      ++trained;
      continue;
    }
    EXPECT_EQ(run.status, 2) << kilobytes << ": " << run.output;
    EXPECT_EQ(std::ranges::count(run.output, '\n'), 1) << run.output;
    EXPECT_THAT(run.output, HasSubstr("ulimit -v"));
    ++refused;
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(trained, 0);
}

TEST_F(Environment, ABatchThatIsSaidToFitIntoTheAddressSpaceFits) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need address space without a limit";
#endif
  const auto train = [&](const std::string& batch) {
    return run_program({"sh", "-c",
                        "ulimit -v 400000; " + regatta_program().string() +
                            " train --model lenet5 --data synth:1x28x28/10@4000 --test none "
                            "--steps 2 --granularity fixed --workers 4 --chunks 4 --batch " +
                            batch + " --out " + (folder.path() / batch).string()});
  };
  const ProgramResult refused = train("4000");
  ASSERT_EQ(refused.status, 2) << refused.output;
  const std::size_t end = refused.output.find(" or less fits");
  ASSERT_NE(end, std::string::npos) << refused.output;
  const std::size_t begin = refused.output.rfind(' ', end - 1) + 1;
  // A tenth less: code that kernels compile and hwloc's tables differ between machines.
  const int told = std::stoi(refused.output.substr(begin, end - begin));
  const ProgramResult fitting = train(std::to_string(told * 9 / 10));
  EXPECT_EQ(fitting.status, 0) << fitting.output;
}

TEST_F(Environment, ARefusedRunIsToldOfRecomputeWhereItsFlagsAllowIt) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need address space without a limit";
#endif
  const auto refusal = [&](const std::string& flags) {
    const std::string command = "ulimit -v 8000000; " + regatta_program().string() +
                                " train --model resnet50 --data imagenet-synth --batch 96 --test "
                                "none --workers 2 --out " +
                                (folder.path() / "large").string() + flags;
    return run_program({"sh", "-c", command}).output;
  };
  for (const char* granularity : {" --granularity fixed", " --granularity auto"}) {
    EXPECT_THAT(refusal(granularity),
                EndsWith(" or less fits, and --recompute auto fits this one\n"));
    EXPECT_THAT(refusal(std::string(granularity) + " --segments step"),
                EndsWith(" or less fits\n"));
  }
}

TEST_F(Environment, TheFirstLineSaysThatTheAffinityMaskTakesCpusAway) {
  if (available_cpus() < 2) GTEST_SKIP() << "needs two CPUs";
  cpu_set_t all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  trained();
  ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
  EXPECT_THAT(read_file(said),
              AllOf(StartsWith("using 1 of "), HasSubstr("CPUs: the affinity mask allows 1")));
}

}  // namespace
}  // namespace regatta
