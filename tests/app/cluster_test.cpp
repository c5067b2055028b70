// Runs over a cluster of nodes inside this machine: real TCP between network namespaces. Skipped
// where those are not allowed.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/files.h"
#include "support/mpirun.h"
#include "support/places.h"
#include "support/scoped_variable.h"
#include "support/temporary_folder.h"
#include "train/checkpoint.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

// Variables that mpirun hands to ranks, beside those that it was already told to.
std::string handed_to_ranks(const std::string& more) {
  const char* before = std::getenv("OMPI_MCA_mca_base_env_list");
  return before ? std::string(before) + ";" + more : more;
}

class Cluster : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = mpi_missing(); !why.empty()) GTEST_SKIP() << why;
    if (!fs::exists(script_)) GTEST_SKIP() << "a package does not have scripts/cluster";
    const ProgramResult check = run_program({script_, "check"});
    if (check.status != 0) GTEST_SKIP() << check.output;
  }
  void TearDown() override {
    if (up_) run_program({script_, "down"});
  }

  void up(const Words& options) {
    Words words{script_, "up"};
    words.insert(words.end(), options.begin(), options.end());
    const ProgramResult result = run_program(words);
    ASSERT_EQ(result.status, 0) << result.output;
    up_ = true;
  }
  ProgramResult cluster(Words words) const {
    words.insert(words.begin(), script_);
    return run_program(words);
  }
  Words train(const std::string& out, const Words& more) const {
    Words words{"train",
                "--model",
                "lenet5",
                "--data",
                "synth:1x28x28/10@96",
                "--batch",
                "32",
                "--test",
                "none",
                "--deterministic",
                "--workers",
                "1",
                "--chunks",
                "4",
                "--out",
                (folder_.path() / out).string()};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::string weights(const std::string& out) const {
    return read_file(latest_checkpoint(folder_.path() / out) / "model.safetensors");
  }
  std::string weights_of_one_process(const std::string& steps) const {
    Words words = train("alone", {"--steps", steps});
    words.insert(words.begin(), regatta_program().string());
    const ProgramResult result = run_program(words);
    EXPECT_EQ(result.status, 0) << result.output;
    return weights("alone");
  }

  TemporaryFolder folder_;
  const std::string script_ = (test_files() / "scripts/cluster").string();
  // A name of this process's own, so that tests side by side do not meet.
  const ScopedVariable name_{"CLUSTER_NAME", "regatta-test-" + std::to_string(::getpid())};
  // Nodes share this machine's CPUs, and so may other tests.
  const ScopedVariable unbound_{"OMPI_MCA_mca_base_env_list",
                                handed_to_ranks("STARPU_WORKERS_NOBIND=1")};
  bool up_ = false;
};

TEST_F(Cluster, WeightsOverSlowCablesAreThoseOfOneProcess) {
  up({"-n", "3", "-c", "spread", "-r", "100mbit", "-d", "200"});
  Words words = train("ranks", {"--steps", "4"});
  words.insert(words.begin(), {"mpirun", regatta_program().string()});
  const ProgramResult result = cluster(words);
  ASSERT_EQ(result.status, 0) << result.output;
  EXPECT_NE(result.output.find("3 ranks: n0 "), std::string::npos) << result.output;
  EXPECT_EQ(weights("ranks"), weights_of_one_process("4"));
}

// Takes some seconds, and two minutes where mpirun gives the node up late: part of "make torture".
TEST_F(Cluster, ARunGoesOnWithoutANodeThatDied) {
  if (!std::getenv("REGATTA_TORTURE")) GTEST_SKIP() << "set REGATTA_TORTURE to kill a node";
  up({"-n", "3", "-c", "spread"});
  // Long enough to be killed on its way, saving every few steps.
  Words words = train("ranks", {"--steps", "120", "--checkpoint-every", "3"});
  words.insert(words.begin(),
               {"env", regatta_program().string(), "launch", "--hosts", "n0,n1,n2", "--"});
  ProgramResult result;
  std::thread run([&] { result = cluster(words); });
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!has_checkpoints(folder_.path() / "ranks") && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(cluster({"kill", "n2"}).status, 0);
  run.join();
  ASSERT_EQ(result.status, 0) << result.output;
  EXPECT_NE(result.output.find("n2 cannot be reached"), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("2 ranks: n0 "), std::string::npos) << result.output;
  EXPECT_EQ(weights("ranks"), weights_of_one_process("120"));
}

TEST(TortureRanks, IsSkippedInOneLineWhereNodesCannotBeMade) {
  const fs::path script = test_files() / "scripts/torture-ranks";
  if (!fs::exists(script)) GTEST_SKIP() << "a package does not have scripts/torture-ranks";
  if (run_program({"/bin/sh", "-c", "command -v python3"}).status != 0)
    GTEST_SKIP() << "there is no python3 here";
  // The script calls the one beside it.
  const TemporaryFolder folder;
  fs::create_directory(folder.path() / "scripts");
  fs::copy_file(script, folder.path() / "scripts/torture-ranks");
  const fs::path refusing = folder.file(
      "scripts/cluster", "#!/bin/sh\necho 'cluster: no privileges for namespaces' >&2\nexit 2\n");
  fs::permissions(refusing, fs::perms::owner_all);
  const ProgramResult result = run_program({folder.path() / "scripts/torture-ranks"});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(
      result.output,
      "torture-ranks: skipped, no run was disturbed: cluster: no privileges for namespaces\n");
}

}  // namespace
}  // namespace regatta
