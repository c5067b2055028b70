// Placements, recorded schedules and plan files, as regatta train takes them.
#include "app/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "base/error.h"
#include "base/files.h"
#include "platform/machine.h"
#include "support/error_text.h"
#include "support/program_run.h"
#include "support/temporary_folder.h"
#include "tasks/placement.h"
#include "trace/store.h"
#include "train/run_folder.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::vector<std::string> train_lenet5(const fs::path& out, std::vector<std::string> more) {
  std::vector<std::string> arguments{"train",
                                     "--model",
                                     "lenet5",
                                     "--data",
                                     "synth:1x28x28/10@96",
                                     "--test",
                                     "none",
                                     "--steps",
                                     "12",
                                     "--batch",
                                     "16",
                                     "--workers",
                                     "2",
                                     "--chunks",
                                     "4",
                                     "--segments",
                                     "block",
                                     "--granularity",
                                     "fixed",
                                     "--trace",
                                     "--out",
                                     out.string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(TrainPlacement, ARecordedScheduleIsRepeatedTaskByTask) {
  const TemporaryFolder folder;
  const fs::path first = folder.path() / "first", second = folder.path() / "second";
  const ProgramRun run = run_regatta(train_lenet5(first, {}));
  ASSERT_EQ(run.code, 0) << run.err;
  const ProgramRun again = run_regatta(
      {"train", "--replay", first.string(), "--steps", "12", "--trace", "--out", second.string()});
  ASSERT_EQ(again.code, 0) << again.err;
  const TrainJob job = read_run_json(second).job;
  ASSERT_EQ(job.plan.placement, Placement::fixed);
  // Every task ran on the worker that the plan says, in every recorded step.
  const trace::Record record = trace::read_store(trace::store_of(second));
  std::vector<int> worker_of;
  for (std::size_t w = 0; w < job.plan.order.size(); ++w)
    for (const std::uint32_t t : job.plan.order[w]) {
      if (worker_of.size() <= t) worker_of.resize(t + 1, -1);
      worker_of[t] = static_cast<int>(w);
    }
  const auto first_kind = std::ranges::find(record.kinds, "train", &trace::TaskKind::job);
  std::size_t checked = 0;
  for (const trace::Task& task : record.tasks)
    if (record.kind_of(task).job == "train") {
      const auto t = task.kind - (first_kind - record.kinds.begin());
      EXPECT_EQ(task.worker, worker_of[static_cast<std::size_t>(t)]);
      ++checked;
    }
  EXPECT_GT(checked, worker_of.size());
}

TEST(TrainPlacement, WhatCannotKeepARunsPaceGoesWithoutIt) {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "run", again = folder.path() / "again";
  ASSERT_EQ(run_regatta(train_lenet5(run, {})).code, 0);
  Json json = read_json(run / "run.json");
  json["plan"]["pace_s"] = 1e-6;
  json["plan"]["nodes"][0]["groups"][0]["powers"] =
      Json::array({{{"slow", 1}, {"watts", 9}}, {{"slow", 1}, {"watts", 2}}});
  std::ofstream(run / "run.json") << json.dump();
  ASSERT_GT(read_run_json(run).job.plan.pace_s, 0);
  const ProgramRun replayed =
      run_regatta({"train", "--replay", run.string(), "--steps", "2", "--out", again.string()});
  EXPECT_EQ(replayed.code, 0) << replayed.err;
  const ProgramRun resumed =
      run_regatta({"train", "--resume", run.string(), "--steps", "14", "--scheduler", "lws"});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
}

TEST(TrainPlacement, StaticAndHybridComputeWhatDynamicComputes) {
  const TemporaryFolder folder;
  std::vector<Json> losses;
  for (const char* how : {"dynamic", "hybrid", "static"}) {
    const fs::path out = folder.path() / how, json = folder.path() / (std::string(how) + ".json");
    const ProgramRun run =
        run_regatta(train_lenet5(out, {"--placement", how, "--json", json.string()}));
    ASSERT_EQ(run.code, 0) << run.err;
    losses.push_back(read_json(json)["steps"]);
    EXPECT_EQ(read_json(out / "run.json")["plan"]["placement"], how);
  }
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_EQ(losses[0], losses[2]);
}

// The plan is checked after whatever changes it.
TEST(TrainPlacement, ARunThatIsResumedIsCheckedLast) {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  ASSERT_EQ(run_regatta(train_lenet5(run, {"--placement", "static"})).code, 0);
  const auto resume = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"train", "--resume", run.string(), "--steps", "14"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_regatta(arguments);
  };
  const ProgramRun fewer = resume({"--workers", "1"});
  EXPECT_EQ(fewer.code, 2);
  EXPECT_THAT(fewer.err, HasSubstr("placement static needs an order for each of 1 worker"));
  const ProgramRun other = resume({"--scheduler", "lws"});
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("--placement static needs --scheduler regatta, not lws"));
  const ProgramRun same = resume({});
  EXPECT_EQ(same.code, 0) << same.err;
}

TEST(TrainPlacement, WhatCannotBePlacedIsRefused) {
  const TemporaryFolder folder;
  const auto refused = [&](std::vector<std::string> more) {
    const ProgramRun run = run_regatta(train_lenet5(folder.path() / "run", std::move(more)));
    EXPECT_EQ(run.code, 2);
    EXPECT_FALSE(fs::exists(folder.path() / "run"));
    return run.err;
  };
  EXPECT_THAT(refused({"--placement", "static", "--accumulate", "2"}),
              HasSubstr("drop --accumulate"));
  EXPECT_THAT(refused({"--placement", "hybrid", "--scheduler", "eager"}),
              HasSubstr("--placement hybrid needs --scheduler regatta, not eager"));
}

// A plan file made of a run's recipe and plan.
fs::path plan_of(const fs::path& run, const fs::path& file,
                 const std::function<void(PlanFile&)>& change = {}) {
  const TrainJob job = read_run_json(run).job;
  PlanFile made{
      .recipe = job.recipe, .network = job.network, .platform_name = "here", .plan = job.plan};
  made.plan.platform = app::machine_fingerprint();
  if (change) change(made);
  write_plan_file(file, made, job.graph);
  return file;
}

TEST(TrainPlan, WhatConcernsSeveralRanksAloneIsToldToASingleProcess) {
  const TemporaryFolder folder;
  const ProgramRun done =
      run_regatta(train_lenet5(folder.path() / "run", {"--update", "tree", "--replan", "on"}));
  EXPECT_EQ(done.code, 0) << done.err;
  for (const char* flag : {"--update tree", "--replan on"})
    EXPECT_THAT(done.err, HasSubstr(std::string(flag) + " concerns several ranks"));
}

TEST(TrainPlan, APlatformWithoutAPlanIsRefused) {
  const TemporaryFolder folder;
  const ProgramRun done =
      run_regatta(train_lenet5(folder.path() / "run", {"--platform", "lab.json"}));
  EXPECT_EQ(done.code, 2);
  EXPECT_THAT(done.err, HasSubstr("give the plan with --plan, or drop it"));
}

TEST(TrainPlan, FollowsAFileAndRefusesOthersWithTheReason) {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "run", plan = folder.path() / "plan.json";
  ASSERT_EQ(run_regatta(train_lenet5(run, {})).code, 0);
  const auto train = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"train",
                                       "--plan",
                                       plan.string(),
                                       "--steps",
                                       "2",
                                       "--out",
                                       (folder.path() / "by-plan").string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_regatta(arguments);
  };
  plan_of(run, plan);
  // Flags that would change the recipe, another recipe, another platform, too many CPUs.
  EXPECT_THAT(train({"--batch", "8"}).err, HasSubstr("--batch cannot be changed by --plan"));
  EXPECT_THAT(train({"--model", "lenet5", "--data", "synth:1x28x28/10@96", "--batch", "16",
                     "--test", "none", "--prefetch", "2"})
                  .err,
              HasSubstr("--prefetch cannot be changed by --plan"));
  const ProgramRun planned = train({"--model", "lenet5", "--data", "synth:1x28x28/10@96", "--batch",
                                    "16", "--test", "none", "--workers", "1", "--chunks", "4"});
  EXPECT_EQ(planned.code, 2);
  EXPECT_THAT(planned.err,
              HasSubstr("--workers, --chunks cannot be changed by --plan: they are the plan's"));
  EXPECT_EQ(std::ranges::count(planned.err, '\n'), 1) << planned.err;
  const ProgramRun other = train({"--model", "lenet5", "--data", "synth:1x28x28/10@96", "--batch",
                                  "16", "--seed", "5", "--test", "none"});
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("another recipe: seed is 5, the plan's 1"));
  plan_of(run, plan, [](PlanFile& file) { file.plan.platform = "feedfeedfeedfeed"; });
  EXPECT_THAT(train({}).err, HasSubstr("it was made for platform 'here' (feedfeedfeedfeed)"));
  plan_of(run, plan, [](PlanFile& file) {
    file.plan.nodes.push_back({"there", file.plan.nodes.front().groups});
    for (PlanNode& node : file.plan.nodes) node.groups.front().chunks = {2, 2, 2, 2};
  });
  EXPECT_THAT(train({}).err, HasSubstr("it is for 2 nodes"));
  if (available_cpus() < 2) GTEST_SKIP() << "the plan is for two CPUs";
  plan_of(run, plan);
  // Flags of the run itself are no plan's.
  EXPECT_THAT(train({"--from", (folder.path() / "none").string()}).err,
              HasSubstr("this is no checkpoint"));
  EXPECT_THAT(train({"--checkpoint-at", "x"}).err, HasSubstr("use whole numbers"));
  const ProgramRun followed = train({});
  EXPECT_EQ(followed.code, 0) << followed.err;
  EXPECT_EQ(read_json(folder.path() / "by-plan/run.json")["plan"]["segments"],
            read_json(run / "run.json")["plan"]["segments"]);
}

}  // namespace
}  // namespace regatta
