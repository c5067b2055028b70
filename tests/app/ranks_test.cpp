// mpirun regatta train: one run of several processes.
#include "train/ranks.h"

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <iostream>
#include <map>
#include <set>

#include "base/files.h"
#include "base/json.h"
#include "data/safetensors.h"
#include "support/mpirun.h"
#include "support/places.h"
#include "support/scoped_variable.h"
#include "support/temporary_folder.h"
#include "trace/merge.h"
#include "trace/store.h"
#include "train/checkpoint.h"
#include "tune/stored_profile.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

class RankedProgram : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = mpi_missing(); !why.empty()) GTEST_SKIP() << why;
  }

  Words train(const std::string& out, const Words& more = {}) const {
    Words words{regatta_program().string(),
                "train",
                "--model",
                "lenet5",
                "--data",
                data_,
                "--batch",
                "32",
                "--test",
                "none",
                "--out",
                (folder_.path() / out).string()};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  // The weights that a run left.
  std::string weights(const std::string& out) const {
    const fs::path checkpoint = latest_checkpoint(folder_.path() / out);
    return read_file(checkpoint / "model.safetensors");
  }
  Json run_json(const std::string& out) const {
    return read_json(folder_.path() / out / "run.json");
  }

  TemporaryFolder folder_;
  std::string data_ = "synth:1x28x28/10@96";
};

TEST_F(RankedProgram, OneRunFolderAndOneResultWhateverTheRanks) {
  const std::string json = (folder_.path() / "result.json").string();
  const ProgramResult result =
      mpirun(2, train("run", {"--steps", "3", "--shares", "20,12", "--json", json}));
  ASSERT_EQ(result.status, 0) << result.output;
  EXPECT_NE(result.output.find("2 ranks:"), std::string::npos) << result.output;
  const Json plan = run_json("run")["plan"];
  ASSERT_EQ(plan["nodes"].size(), 2u);
  EXPECT_EQ(read_json(json)["steps"].size(), 3u);
  EXPECT_EQ(result.output.find("run folder"), result.output.rfind("run folder"));
}

TEST_F(RankedProgram, DeterministicWeightsAreThoseOfOneProcessAndAnyNumberCanGoOn) {
  const Words same{"--deterministic", "--chunks", "4"};
  const auto with = [&](Words more) {
    more.insert(more.end(), same.begin(), same.end());
    return more;
  };
  ASSERT_EQ(run_program(train("alone", with({"--steps", "6"}))).status, 0);
  const ProgramResult three = mpirun(3, train("ranks", with({"--steps", "3"})));
  ASSERT_EQ(three.status, 0) << three.output;
  const Words again{regatta_program().string(), "train", "--resume",
                    (folder_.path() / "ranks").string(), "--steps"};
  const auto until = [&](const char* step) {
    Words words = again;
    words.emplace_back(step);
    return words;
  };
  const ProgramResult two = mpirun(2, until("5"));
  ASSERT_EQ(two.status, 0) << two.output;
  const ProgramResult one = run_program(until("6"));
  ASSERT_EQ(one.status, 0) << one.output;
  EXPECT_EQ(weights("ranks"), weights("alone"));
}

TEST_F(RankedProgram, SharesFollowMeasuredSpeedUnlessTheyAreGiven) {
  const ProgramResult result = mpirun(2, train("run", {"--steps", "2"}));
  ASSERT_EQ(result.status, 0) << result.output;
  std::int64_t samples = 0;
  const Json run = run_json("run");
  for (const Json& node : run["plan"]["nodes"])
    for (const Json& chunk : node["groups"][0]["chunks"]) samples += chunk.get<std::int64_t>();
  EXPECT_EQ(samples, 32);
}

// A run whose second rank takes eight times as long for its tasks, and begins with equal shares.
Words with_a_slow_rank(const Words& words) {
  Words all{"sh", "-c",
            "if [ $OMPI_COMM_WORLD_RANK = 1 ]; then set -- \"$@\" --slow 0=8; fi; "
            "exec \"$0\" \"$@\""};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

TEST_F(RankedProgram, SharesFollowASlowRankAndChangeNoBit) {
  data_ = "synth:1x28x28/10@6400";  // an epoch's end would interrupt the steps that are counted
  const Words same{"--deterministic", "--chunks", "8", "--steps", "150"};
  const auto with = [&](Words more) {
    more.insert(more.end(), same.begin(), same.end());
    return more;
  };
  ASSERT_EQ(run_program(train("alone", same)).status, 0);
  const ProgramResult result =
      mpirun(2, with_a_slow_rank(train("ranks", with({"--shares", "16,16", "--replan", "on"}))));
  ASSERT_EQ(result.status, 0) << result.output;
  const std::size_t told = result.output.find("shares were planned anew: ");
  ASSERT_NE(told, std::string::npos) << result.output;
  const std::string line = result.output.substr(told, result.output.find('\n', told) - told);
  // Whole chunks of four samples go from the slow rank to the other.
  const std::size_t arrow = line.find("16 -> ");
  ASSERT_NE(arrow, std::string::npos) << line;
  const int samples = std::stoi(line.substr(arrow + 6));
  EXPECT_GT(samples, 16) << line;
  EXPECT_EQ(samples % 4, 0) << line;
  EXPECT_EQ(weights("ranks"), weights("alone"));
}

TEST_F(RankedProgram, SharesStayWhereReplanIsOff) {
  data_ = "synth:1x28x28/10@6400";
  const ProgramResult result = mpirun(
      2, with_a_slow_rank(train("run", {"--steps", "40", "--shares", "16,16", "--replan", "off"})));
  ASSERT_EQ(result.status, 0) << result.output;
  EXPECT_EQ(result.output.find("planned anew"), std::string::npos) << result.output;
}

// Both ranks finish their traces together, so the first one's error waits until then.
TEST_F(RankedProgram, AnErrorOfTheFirstRankIsToldAfterTheTraceIsWhole) {
  const ProgramResult result =
      mpirun(2, train("run", {"--steps", "3", "--trace", "--json", "/dev/full"}));
  EXPECT_EQ(result.status, 2) << result.output;
  const std::string line = "regatta: cannot write '/dev/full': No space left on device";
  EXPECT_NE(result.output.find(line), std::string::npos) << result.output;
  EXPECT_EQ(result.output.find(line), result.output.rfind(line)) << result.output;
  const trace::Record record = trace::read_store(folder_.path() / "run" / trace::store_name);
  EXPECT_EQ(trace::faults(record), std::vector<std::string>{});
  std::set<std::string> nodes;
  for (const trace::Task& task : record.tasks)
    nodes.insert(record.workers[static_cast<std::size_t>(task.worker)].node);
  EXPECT_EQ(nodes.size(), 2u);
}

TEST_F(RankedProgram, OneStoreHoldsTheTasksOfAllRanksByNode) {
  const ProgramResult result = mpirun(
      2, train("run", {"--steps", "4", "--shares", "20,12", "--trace", "--trace-steps", "2:3"}));
  ASSERT_EQ(result.status, 0) << result.output;
  const trace::Record record = trace::read_store(folder_.path() / "run" / trace::store_name);
  EXPECT_EQ(trace::faults(record), std::vector<std::string>{});
  const Json nodes = run_json("run")["plan"]["nodes"];
  std::map<std::string, int> computed, exchanged;  // tasks of step 2 by node
  for (const trace::Task& task : record.tasks) {
    const trace::Worker& worker = record.workers[static_cast<std::size_t>(task.worker)];
    if (task.step == 2) ++(trace::computes(worker) ? computed : exchanged)[worker.node];
  }
  for (const Json& node : nodes) {
    const auto name = node["name"].get<std::string>();
    EXPECT_GT(computed[name], 0) << name;
    EXPECT_GT(exchanged[name], 0) << name;
  }
  EXPECT_EQ(computed.size(), 2u);
  EXPECT_TRUE(trace::clock_error(record));
  // Nothing is left of what the second rank sent, and viewers tell the nodes apart.
  EXPECT_FALSE(fs::exists(folder_.path() / "run" / "trace.sqlite.rank-1"));
  const ProgramResult doctor =
      run_program({regatta_program().string(), "doctor", (folder_.path() / "run").string()});
  ASSERT_EQ(doctor.status, 0) << doctor.output;
  EXPECT_NE(doctor.output.find("clocks are matched to within"), std::string::npos) << doctor.output;
}

TEST_F(RankedProgram, CompareLaysArrivalsOfEachRankSideBySide) {
  const ScopedVariable profiles{"REGATTA_PROFILES", (folder_.path() / "profiles").string()};
  // A rank's profile is that of the machine with the rank's number of CPUs.
  for (MachineMark mark = profile_store().mark(); mark.cores > 0; --mark.cores)
    ProfileStore(mark).learn(std::vector<Observation>(8, {"some task", 1, 1, 1e-3}));
  const ProgramResult trained =
      mpirun(2, train("run", {"--steps", "6", "--shares", "20,12", "--segments", "block",
                              "--update", "ring", "--trace", "--trace-steps", "2:5"}));
  ASSERT_EQ(trained.status, 0) << trained.output;
  const std::string run = (folder_.path() / "run").string();
  const fs::path json = folder_.path() / "compare.json";
  // The machine that compares has measured nothing: the profile comes from the run.
  const ScopedVariable elsewhere{"REGATTA_PROFILES", (folder_.path() / "nothing").string()};
  const ProgramResult compared =
      run_program({regatta_program().string(), "compare", run, "--json", json.string()});
  ASSERT_EQ(compared.status, 0) << compared.output;
  EXPECT_NE(compared.output.find("with the costs that it had measured"), std::string::npos)
      << compared.output;
  EXPECT_TRUE(profile_from_json(read_json(fs::path(run) / "profiles/rank-0.json"))
                  .profile.find("some task"));
  const ProgramResult simulated = run_program({regatta_program().string(), "simulate", run});
  EXPECT_EQ(simulated.status, 0) << simulated.output;
  for (const Json& node : run_json("run")["plan"]["nodes"])
    EXPECT_NE(simulated.output.find(node["name"].get<std::string>()), std::string::npos)
        << simulated.output;
  std::map<std::string, Json> rows;
  const Json result = read_json(json);
  for (const Json& row : result["rows"]) rows[row["quantity"].get<std::string>()] = row;
  ASSERT_TRUE(rows.contains("exchange_s")) << compared.output;
  for (const char* column : {"bound", "planned", "simulated", "measured"}) {
    EXPECT_GT(rows["exchange_s"][column].get<double>(), 0) << column;
  }
  int buckets = 0;
  const Json nodes = run_json("run")["plan"]["nodes"];
  for (const auto& [quantity, row] : rows) {
    if (!quantity.starts_with("messages exchange ")) continue;
    ++buckets;
    for (const Json& node : nodes) {
      const std::string arrival = "arrival " + quantity.substr(sizeof "messages " - 1) + ", " +
                                  node["name"].get<std::string>();
      ASSERT_TRUE(rows.contains(arrival)) << arrival;
      for (const char* column : {"planned", "simulated", "measured"})
        EXPECT_GT(rows[arrival][column].get<double>(), 0) << arrival << " " << column;
    }
  }
  EXPECT_GT(buckets, 1);
}

TEST_F(RankedProgram, BenchScalingMeasuresNumbersOfRanks) {
  const fs::path json = folder_.path() / "scaling.json";
  const Words bench{regatta_program().string(),
                    "bench",
                    "scaling",
                    "--model",
                    "lenet5",
                    "--batch",
                    "32",
                    "--steps",
                    "6",
                    "--repeats",
                    "1",
                    "--segments",
                    "block"};
  const auto with = [&](const Words& more) {
    Words words = bench;
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  };
  const ProgramResult result = with({"--ranks", "2,1", "--json", json.string()});
  ASSERT_EQ(result.status, 0) << result.output;
  const Json rows = read_json(json)["rows"];
  ASSERT_EQ(rows.size(), 2u);
  for (const Json& row : rows) {
    EXPECT_GT(row["images_per_s"].get<double>(), 0);
    EXPECT_GT(row["ideal_images_per_s"].get<double>(), 0);
    EXPECT_TRUE(row.contains("taken_by_others"));
  }
  EXPECT_EQ(rows[0]["ranks"], 1);
  EXPECT_DOUBLE_EQ(rows[0]["speedup"].get<double>(), 1);
  EXPECT_TRUE(rows[0]["exchange_s"].is_null());
  for (const char* field : {"exchange_s", "simulated_exchange_s", "exchange_bound_s"})
    EXPECT_GT(rows[1][field].get<double>(), 0) << field;

  const ProgramResult hosts = with({"--ranks", "1,3", "--hosts", "a,b"});
  EXPECT_EQ(hosts.status, 2);
  EXPECT_NE(hosts.output.find("--ranks 1,3: --hosts names only 2"), std::string::npos)
      << hosts.output;
  EXPECT_EQ(with({"--ranks", "64"}).status, 2);
}

// Stands in for mpirun: all runs work but the recorded one, which comes last.
TEST(BenchRanks, KeepsWhatWasMeasuredIfTheExchangeCannotBe) {
  const TemporaryFolder folder;
  const fs::path mpirun = folder.path() / "mpirun", json = folder.path() / "result.json";
  write_file(mpirun, R"(#!/bin/sh
case "$*" in
  *--trace*) echo "regatta: the disk is full"; exit 1;;
  *"bench cell"*) echo "100 images/s"; echo "100 images/s";;
  *) while [ "$1" != --json ]; do shift; done; echo '{"images_per_s": 150, "taken_by_others": 0.5}' > "$2";;
esac
)");
  fs::permissions(mpirun, fs::perms::owner_all);
  const ScopedVariable path("PATH", folder.path().string() + ":" + ::getenv("PATH"));
  const ProgramResult result =
      run_program({regatta_program().string(), "bench", "scaling", "--model", "lenet5", "--batch",
                   "32", "--ranks", "2", "--repeats", "1", "--json", json.string()});
  ASSERT_EQ(result.status, 0) << result.output;
  EXPECT_NE(result.output.find("the exchange of 2 ranks is not known"), std::string::npos);
  EXPECT_NE(result.output.find("the disk is full"), std::string::npos) << result.output;
  const Json row = read_json(json)["rows"][0];
  EXPECT_EQ(row["images_per_s"], 150);
  EXPECT_EQ(row["ideal_images_per_s"], 200);
  EXPECT_TRUE(row["exchange_s"].is_null());
  EXPECT_EQ(row["taken_by_others"], 0.5);
  EXPECT_NE(result.output.find("disturbed: others took 50%"), std::string::npos) << result.output;
}

// A plan for two nodes of one core each, the first three times as fast, that are no hosts of ours.
std::string plan_for_two_nodes(const fs::path& folder) {
  const auto node = [](const char* name, double flops) {
    return Json{{"name", name},
                {"groups",
                 {{{"name", "cpu"},
                   {"kind", "cpu"},
                   {"count", 1},
                   {"memory_bytes", 17179869184},
                   {"watts", {{"idle", 1}, {"active", 5}}},
                   {"costs", {{"flops", flops}, {"memory_bandwidth", 4e10}}}}}}};
  };
  write_file(folder / "two.json",
             Json{{"regatta_platform", 1},
                  {"name", "two"},
                  {"nodes", {node("fast", 6e10), node("slow", 2e10)}},
                  {"network", {{"topology", "star"}, {"bandwidth", 1e9}, {"latency", 5e-5}}}}
                 .dump());
  const std::string file = (folder / "plan.json").string();
  const ProgramResult planned =
      run_program({regatta_program().string(), "plan", "--platform", (folder / "two.json").string(),
                   "--model", "lenet5", "--data", "synth:1x28x28/10@96", "--batch", "32",
                   "--update", "tree", "--out", file});
  EXPECT_EQ(planned.status, 0) << planned.output;
  return file;
}

std::vector<double> losses_of(const fs::path& json) {
  std::vector<double> losses;
  const Json result = read_json(json);
  for (const Json& step : result["steps"]) losses.push_back(step["loss"].get<double>());
  return losses;
}

TEST_F(RankedProgram, FollowsAPlanFileForSeveralNodes) {
  const std::string plan = plan_for_two_nodes(folder_.path());
  const Json nodes = read_json(plan)["plan"]["nodes"];
  const fs::path two = folder_.path() / "two-ranks.json", one = folder_.path() / "one.json";
  const Words by_plan{regatta_program().string(),
                      "train",
                      "--plan",
                      plan,
                      "--steps",
                      "3",
                      "--test",
                      "none",
                      "--json",
                      two.string(),
                      "--out",
                      (folder_.path() / "run").string()};
  const ProgramResult result = mpirun(2, by_plan);
  ASSERT_EQ(result.status, 0) << result.output;
  EXPECT_NE(result.output.find("is node 'fast', rank 1 on "), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("is node 'slow' by the order of the plan"), std::string::npos);
  EXPECT_NE(result.output.find("gradients meet by tree"), std::string::npos) << result.output;
  const Json followed = run_json("run")["plan"]["nodes"];
  ASSERT_EQ(followed.size(), 2u);
  for (std::size_t n = 0; n < 2; ++n) {
    EXPECT_EQ(followed[n]["name"], nodes[n]["name"]);
    EXPECT_EQ(followed[n]["groups"][0]["chunks"], nodes[n]["groups"][0]["chunks"]);
    EXPECT_EQ(followed[n]["groups"][0]["workers"], nodes[n]["groups"][0]["workers"]);
  }
  EXPECT_GT(followed[0]["groups"][0]["share"], followed[1]["groups"][0]["share"]);

  ASSERT_EQ(run_program(train("alone", {"--steps", "3", "--json", one.string()})).status, 0);
  const std::vector<double> losses = losses_of(two), alone = losses_of(one);
  ASSERT_EQ(losses.size(), alone.size());
  for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], alone[i], 1e-4) << i;
}

TEST_F(RankedProgram, APlanFileNeedsARankForEachOfItsNodes) {
  const std::string plan = plan_for_two_nodes(folder_.path());
  const Words words{
      regatta_program().string(),       "train", "--plan", plan, "--steps", "1", "--out",
      (folder_.path() / "run").string()};
  const std::string way_out = "start 2, such as by mpirun -n 2";
  const ProgramResult three = mpirun(3, words);
  EXPECT_EQ(three.status, 2);
  EXPECT_NE(three.output.find("the plan is for 2 nodes, and 3 ranks were started: " + way_out),
            std::string::npos)
      << three.output;
  const ProgramResult alone = run_program(words);
  EXPECT_EQ(alone.status, 2);
  EXPECT_NE(alone.output.find("mpirun -n 2"), std::string::npos) << alone.output;
  EXPECT_FALSE(fs::exists(folder_.path() / "run"));
}

TEST_F(RankedProgram, AMistakeIsToldOnceAndLeavesNothing) {
  const ProgramResult result = mpirun(2, train("run", {"--shares", "20,20"}));
  EXPECT_EQ(result.status, 2);
  const std::string line = "regatta: --shares 20,20 are 40 samples, the batch 32";
  EXPECT_NE(result.output.find(line), std::string::npos) << result.output;
  EXPECT_EQ(result.output.find(line), result.output.rfind(line)) << result.output;
  EXPECT_FALSE(fs::exists(folder_.path() / "run"));
}

// Before shares are known, speeds are measured on equal ones: 16 samples each here.
TEST_F(RankedProgram, ChunksThatAreNotAShareAreRefusedBeforeAnythingIsMeasured) {
  const ProgramResult fewer = mpirun(2, train("run", {"--chunks", "8,4"}));
  EXPECT_EQ(fewer.status, 2) << fewer.output;
  EXPECT_NE(fewer.output.find("--chunks 8,4 are 12 samples, and there are 16 to cut"),
            std::string::npos)
      << fewer.output;
  const ProgramResult both = mpirun(2, train("run", {"--chunks", "8,8", "--shares", "20,12"}));
  EXPECT_EQ(both.status, 2) << both.output;
  EXPECT_NE(both.output.find("drop --shares"), std::string::npos) << both.output;
}

// Only the first rank writes: where it cannot, the others must not wait for it.
TEST_F(RankedProgram, ARunFolderThatCannotBeWrittenEndsAllRanks) {
  const ProgramResult begun = mpirun(2, train("run", {"--steps", "2"}));
  ASSERT_EQ(begun.status, 0) << begun.output;
  const fs::path run = folder_.path() / "run", metrics = run / "metrics.jsonl";
  fs::remove(metrics);
  fs::create_directory(metrics);
  const ProgramResult result =
      mpirun(2, {regatta_program().string(), "train", "--resume", run.string(), "--steps", "4"});
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.output.find("cannot create '" + metrics.string() + "'"), std::string::npos)
      << result.output;
}

TEST_F(RankedProgram, ARankWithOtherSettingsIsNamed) {
  // Each rank is started by a shell, which tells the second another seed.
  const ProgramResult result =
      mpirun(2, {"sh", "-c", "exec \"$0\" \"$@\" --seed $((OMPI_COMM_WORLD_RANK + 1))",
                 regatta_program().string(), "train", "--model", "tiny", "--data", "digits-synth",
                 "--batch", "8", "--steps", "1", "--out", (folder_.path() / "run").string()});
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.output.find("regatta: rank 1 on "), std::string::npos) << result.output;
  EXPECT_NE(result.output.find(" in the recipe: seed is 2 instead of 1; all ranks need the same"),
            std::string::npos)
      << result.output;
}

TEST_F(RankedProgram, ARankWithOtherDataOrAnotherGoalIsNamed) {
  const auto with = [&](const std::string& more) {
    return mpirun(2,
                  {"sh", "-c", "r=$OMPI_COMM_WORLD_RANK; exec \"$0\" \"$@\" " + more,
                   regatta_program().string(), "train", "--model", "tiny", "--batch", "8", "--test",
                   "none", "--shares", "equal", "--out", (folder_.path() / "run").string()});
  };
  const ProgramResult data = with("--steps 1 --data synth:1x12x12/3@4$r");
  EXPECT_EQ(data.status, 2);
  EXPECT_NE(data.output.find(" in the recipe: content of data."), std::string::npos) << data.output;
  const ProgramResult goal = with("--data synth:1x12x12/3@40 --steps $((r + 1))");
  EXPECT_EQ(goal.status, 2);
  EXPECT_NE(goal.output.find(" in the run: last step is 2 instead of 1"), std::string::npos)
      << goal.output;
}

TEST_F(RankedProgram, ARankThatStartsFromOtherWeightsIsNamed) {
  const fs::path trained = folder_.path() / "trained";
  for (const char* steps : {"1", "2"})
    ASSERT_EQ(run_program(train(std::string("trained-") + steps,
                                {"--steps", steps, "--granularity", "fixed"}))
                  .status,
              0);
  Words words{"sh", "-c",
              "exec \"$0\" \"$@\" --init " + trained.string() +
                  "-$((OMPI_COMM_WORLD_RANK + 1))/checkpoints/step-$((OMPI_COMM_WORLD_RANK + 1))/"
                  "model.safetensors"};
  const Words program = train("run", {"--steps", "1", "--shares", "equal"});
  words.insert(words.end(), program.begin(), program.end());
  const ProgramResult result = mpirun(2, words);
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.output.find("has started from weights with checksum "), std::string::npos)
      << result.output;
}

TEST_F(RankedProgram, GradientsInBf16AreOfTheRecipeAndConcernSeveralRanksAlone) {
  const ProgramResult trained =
      mpirun(2, train("run", {"--steps", "2", "--shares", "20,12", "--wire-precision", "bf16",
                              "--update", "ring"}));
  ASSERT_EQ(trained.status, 0) << trained.output;
  EXPECT_NE(trained.output.find("gradients meet by ring in bf16"), std::string::npos)
      << trained.output;
  EXPECT_EQ(run_json("run")["recipe"]["wire_precision"], "bf16");
  ASSERT_EQ(
      mpirun(2, train("full", {"--steps", "2", "--shares", "20,12", "--update", "ring"})).status,
      0);
  EXPECT_NE(weights("run"), weights("full"));

  const Words again{regatta_program().string(),        "train",   "--resume",
                    (folder_.path() / "run").string(), "--steps", "3"};
  Words other = again;
  other.insert(other.end(), {"--wire-precision", "fp32"});
  const ProgramResult refused = run_program(other);
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.output.find("--wire-precision cannot be changed by --resume"),
            std::string::npos)
      << refused.output;
  const ProgramResult alone = run_program(again);
  EXPECT_EQ(alone.status, 0) << alone.output;
  EXPECT_NE(alone.output.find("this run is a single process, and rounds none"), std::string::npos)
      << alone.output;
}

TEST_F(RankedProgram, OneProcessComputesTheSameBitsWhateverTheWirePrecision) {
  for (const char* precision : {"fp32", "bf16"})
    ASSERT_EQ(run_program(train(precision, {"--steps", "3", "--workers", "1", "--granularity",
                                            "fixed", "--wire-precision", precision}))
                  .status,
              0);
  EXPECT_EQ(weights("bf16"), weights("fp32"));
}

TEST_F(RankedProgram, GradientsInBf16AreRefusedWithDeterministicAndWithMpisOwnSum) {
  const ProgramResult alone =
      run_program(train("run", {"--steps", "1", "--wire-precision", "bf16", "--deterministic"}));
  EXPECT_EQ(alone.status, 2);
  EXPECT_NE(alone.output.find("drop it or --deterministic"), std::string::npos) << alone.output;
  const ProgramResult two =
      mpirun(2, train("run", {"--steps", "1", "--shares", "equal", "--wire-precision", "bf16",
                              "--update", "mpi"}));
  EXPECT_EQ(two.status, 2);
  EXPECT_NE(two.output.find("use another --update than mpi"), std::string::npos) << two.output;
  EXPECT_FALSE(fs::exists(folder_.path() / "run"));
}

// What every rank of RanksThatEnd runs, started by mpirun. Its limits are short, and long enough
// for a busy machine.
class RankedEnd : public testing::Test {
 protected:
  void SetUp() override {
    if (!launch_environment()) GTEST_SKIP() << "RanksThatEnd starts these by mpirun";
  }
  static std::unique_ptr<Ranks> joined() {
    return Ranks::join({std::chrono::milliseconds(20), std::chrono::milliseconds(1500)});
  }
};

TEST_F(RankedEnd, WithoutARankThatStopsAfterTheLastStep) {
  const std::unique_ptr<Ranks> ranks = joined();
  ranks->training_is_over();
  if (ranks->rank() == 1) ::raise(SIGSTOP);
  const std::vector<std::string> gathered = ranks->gather("records");
  ranks->part(0);
  if (ranks->first()) std::cout << "went on without '" << gathered[1] << "'" << std::endl;
}

TEST_F(RankedEnd, WithoutARankThatStopsAfterItHasParted) {
  const std::unique_ptr<Ranks> ranks = joined();
  ranks->training_is_over();
  ranks->part(0);
  if (ranks->rank() == 1) ::raise(SIGSTOP);
}

// mpirun must end the stopped rank. It does so with code 1, and now and then crashes in its own
// clean-up, so its code is not looked at: only what the ranks did, and that they ended by
// themselves.
class RanksThatEnd : public RankedProgram {
 protected:
  static constexpr const char* mpirun_lost_patience = "time limit";
  static ProgramResult three_ranks(const std::string& test) {
    const fs::path self = fs::read_symlink("/proc/self/exe");
    return mpirun(3, {self.string(), "--gtest_filter=RankedEnd." + test, "--gtest_brief=1"});
  }
};

TEST_F(RanksThatEnd, AreNotHeldUpByOneThatStopsAfterTheLastStep) {
  const ProgramResult result = three_ranks("WithoutARankThatStopsAfterTheLastStep");
  EXPECT_EQ(result.output.find(mpirun_lost_patience), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("fell silent after the last step: rank 1 on "), std::string::npos)
      << result.output;
  EXPECT_NE(result.output.find("went on without ''"), std::string::npos) << result.output;
}

TEST_F(RanksThatEnd, AreNotHeldUpByOneThatStopsInItsEnd) {
  const ProgramResult result = three_ranks("WithoutARankThatStopsAfterItHasParted");
  EXPECT_EQ(result.output.find(mpirun_lost_patience), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("another rank does not end"), std::string::npos) << result.output;
}

TEST_F(RankedProgram, DataMissingOnOneRankNamesIt) {
  const ProgramResult result =
      mpirun(2, {"sh", "-c",
                 "if [ $OMPI_COMM_WORLD_RANK = 1 ]; then set -- \"$@\" --data folder:/nowhere; "
                 "else set -- \"$@\" --data digits-synth; fi; exec \"$0\" \"$@\"",
                 regatta_program().string(), "train", "--model", "tiny", "--batch", "8", "--steps",
                 "1", "--out", (folder_.path() / "run").string()});
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.output.find("regatta: rank 1 on "), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("/nowhere"), std::string::npos) << result.output;
}

TEST(CpusOfRanks, AreSharedOutAndNeverNone) {
  const std::vector<int> cpus{2, 3, 4, 5, 9};
  EXPECT_EQ(cpus_of_rank(cpus, 0, 2), (std::vector<int>{2, 3}));
  EXPECT_EQ(cpus_of_rank(cpus, 1, 2), (std::vector<int>{4, 5, 9}));
  EXPECT_EQ(cpus_of_rank({7}, 2, 3), (std::vector<int>{7}));
  EXPECT_EQ(cpus_of_rank({0, 1}, 3, 4), (std::vector<int>{1}));
}

}  // namespace
}  // namespace regatta
