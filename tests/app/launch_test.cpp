// regatta launch: a run of several ranks, interrupted or mistaken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "base/files.h"
#include "support/mpirun.h"
#include "support/program_process.h"
#include "support/scoped_variable.h"
#include "support/temporary_folder.h"
#include "train/checkpoint.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Launch : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = mpi_missing(); !why.empty()) GTEST_SKIP() << why;
  }
  std::vector<std::string> two_ranks(const std::vector<std::string>& train) const {
    std::vector<std::string> words{"launch", "--hosts", "localhost:2", "--restarts",
                                   "0",      "--",      "train"};
    words.insert(words.end(), train.begin(), train.end());
    return words;
  }

  TemporaryFolder folder_;
  const fs::path run_ = folder_.path() / "run", said_ = folder_.path() / "said";
  const ScopedVariable unbound_{"STARPU_WORKERS_NOBIND", "1"};
};

TEST_F(Launch, ASignalEndsAllRanksWithACheckpoint) {
  ProgramProcess program(
      two_ranks({"--model", "tiny", "--data", "synth:1x12x12/3@40", "--test", "none", "--batch",
                 "8", "--workers", "1", "--epochs", "1000000", "--out", run_.string()}),
      said_);
  // Ranks that wrote a checkpoint are on their way.
  while (!has_checkpoints(run_) && !program.ended())
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  program.signal(SIGINT);
  EXPECT_EQ(program.wait(), 128 + SIGINT);
  EXPECT_THAT(read_file(said_), HasSubstr("interrupted and saved"));
  EXPECT_FALSE(latest_checkpoint(run_).empty());
}

TEST_F(Launch, AMistakeIsToldAsATrainingProcessTellsIt) {
  EXPECT_EQ(ProgramProcess(two_ranks({"--model", "lenet", "--data", "digits-synth"}), said_).wait(),
            2);
  EXPECT_THAT(read_file(said_), HasSubstr("did you mean 'lenet5'?"));
}

TEST_F(Launch, AHostThatCannotBeReachedIsAMistakeOfOneLine) {
  // In place of ssh, which would ask a network.
  const fs::path agent = folder_.file("ssh", "#!/bin/sh\necho 'ssh: no such host' >&2\nexit 255\n");
  fs::permissions(agent, fs::perms::owner_all);
  const ScopedVariable stranger{"OMPI_MCA_plm_rsh_agent", agent.string()};
  for (const char* restarts : {"0", "3"})
    for (const char* hosts : {"nowhere", "localhost,nowhere:2"}) {
      const fs::path said = folder_.file("said", "");
      ProgramProcess program({"launch", "--hosts", hosts, "--restarts", restarts, "--", "train",
                              "--model", "tiny", "--data", "digits-synth", "--out", run_.string()},
                             said);
      EXPECT_EQ(program.wait(), 2);
      EXPECT_EQ(read_file(said),
                "regatta: --hosts: nothing can be started on nowhere (ssh: no such host); it "
                "must be reachable by: ssh nowhere true\n");
      EXPECT_FALSE(fs::exists(run_));
    }
}

// In place of mpirun: leaves the run given as FINISHED in the folder asked for, and ends as if a
// rank had then been lost.
TEST_F(Launch, ARunThatLosesARankAfterItsLastStepIsComplete) {
  const fs::path finished = folder_.path() / "finished";
  const std::vector<std::string> tiny{
      "--model", "tiny",    "--data", "synth:1x12x12/3@40", "--test", "none", "--batch",
      "8",       "--steps", "3",      "--workers",          "1",      "--out"};
  const auto to = [&](const fs::path& folder) {
    std::vector<std::string> words = tiny;
    words.push_back(folder.string());
    return words;
  };
  std::vector<std::string> alone = to(finished);
  alone.insert(alone.begin(), "train");
  ASSERT_EQ(ProgramProcess(alone, said_).wait(), 0) << read_file(said_);
  const fs::path mpirun = folder_.file(
      "mpirun", "#!/bin/sh\ncp -r '" + finished.string() + "' '" + run_.string() + "'\nexit 75\n");
  fs::permissions(mpirun, fs::perms::owner_all);
  const ScopedVariable path("PATH", folder_.path().string() + ":" + ::getenv("PATH"));
  EXPECT_EQ(ProgramProcess(two_ranks(to(run_)), said_).wait(), 0);
  const std::string said = read_file(said_);
  EXPECT_THAT(said, HasSubstr("ended with code 75 after all its 3 steps"));
  EXPECT_THAT(said, HasSubstr((run_ / "checkpoints/step-3").string() + " are complete"));
}

}  // namespace
}  // namespace regatta
