// Which environment makes a process one of several.
#include "transport/launcher.h"

#include <gtest/gtest.h>

#include <thread>

#include "support/scoped_variable.h"
#include "transport/collectives.h"
#include "transport/in_process.h"

namespace regatta {
namespace {

// No launcher of ours: tests may themselves run under one.
class Launcher : public testing::Test {
 protected:
  ScopedVariable rank_{"OMPI_COMM_WORLD_RANK", ""}, size_{"OMPI_COMM_WORLD_SIZE", ""},
      local_rank_{"OMPI_COMM_WORLD_LOCAL_RANK", ""}, local_size_{"OMPI_COMM_WORLD_LOCAL_SIZE", ""},
      pmix_{"PMIX_RANK", ""}, pmi_{"PMI_RANK", ""}, pmi_size_{"PMI_SIZE", ""},
      tasks_{"SLURM_NTASKS", ""}, step_{"SLURM_STEP_NUM_TASKS", ""}, id_{"SLURM_PROCID", ""};
};

TEST_F(Launcher, WithoutOneThereIsNoRank) { EXPECT_FALSE(launch_environment()); }

TEST_F(Launcher, MpirunsVariablesTellRankAndSize) {
  const ScopedVariable rank("OMPI_COMM_WORLD_RANK", "3"), size("OMPI_COMM_WORLD_SIZE", "4"),
      local("OMPI_COMM_WORLD_LOCAL_RANK", "1"), on_machine("OMPI_COMM_WORLD_LOCAL_SIZE", "2");
  const auto launch = launch_environment();
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->rank, 3);
  EXPECT_EQ(launch->size, 4);
  EXPECT_EQ(launch->local_rank, 1);
  EXPECT_EQ(launch->local_size, 2);
  const ScopedVariable apart("REGATTA_RANKS", "0");
  EXPECT_FALSE(launch_environment());
}

TEST_F(Launcher, ABatchScriptOfSlurmIsNoRankUntilSrunStartsIt) {
  const ScopedVariable tasks("SLURM_NTASKS", "4"), id("SLURM_PROCID", "0");
  EXPECT_FALSE(launch_environment());
  const ScopedVariable started("PMIX_RANK", "2");
  ASSERT_TRUE(launch_environment());
  EXPECT_EQ(launch_environment()->size, 4);
}

TEST_F(Launcher, ARunOfOneProcessStartsNothingOfMpi) {
  const ScopedVariable rank("OMPI_COMM_WORLD_RANK", "0"), size("OMPI_COMM_WORLD_SIZE", "1");
  EXPECT_FALSE(launch_environment());
}

TEST(Collectives, EveryRankGetsEveryText) {
  const auto ranks = in_process_ranks(3);
  std::vector<std::vector<std::string>> got(3);
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < 3; ++r)
    threads.emplace_back([&, r] {
      got[r] = gather_texts(*ranks[r], std::string(r, 'x'));
      got[r].push_back(text_of_first(*ranks[r], r == 0 ? "plan" : ""));
    });
  for (std::thread& each : threads) each.join();
  for (const auto& each : got) EXPECT_EQ(each, (std::vector<std::string>{"", "x", "xx", "plan"}));
}

}  // namespace
}  // namespace regatta
