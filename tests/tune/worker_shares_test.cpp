// Workers made unequal, and the shares they get.
#include "tune/worker_shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "plan/make_plan.h"
#include "support/error_text.h"
#include "support/program_run.h"
#include "support/temporary_folder.h"
#include "train/run_folder.h"
#include "tune/balance.h"

namespace regatta {
namespace {

using testing::HasSubstr;

TEST(SlowWorkers, AreParsedByWorker) {
  EXPECT_EQ(slow_workers({}, 2), std::vector<double>{});
  EXPECT_EQ(slow_workers({"1=2.5"}, 3), (std::vector<double>{1, 2.5, 1}));
  EXPECT_EQ(slow_workers({"0=3", "1=2"}, 2), (std::vector<double>{3, 2}));
  for (const char* bad : {"1", "=2", "1=", "1=0.5", "x=2", "1=2x", "1=1e9", "-1=2", "1=nan", "="})
    EXPECT_THROW(slow_workers({bad}, 2), InputError) << bad;
  EXPECT_THAT(error_text([] { slow_workers({"2=2"}, 2); }), HasSubstr("workers 0 to 1"));
}

TEST(SlowWorkers, AGpusFactorIsTakenOut) {
  std::vector<std::string> flags{"1=2", "cuda=4", "0=3"};
  EXPECT_EQ(take_gpu_slowness(flags), 4);
  EXPECT_EQ(flags, (std::vector<std::string>{"1=2", "0=3"}));
  EXPECT_EQ(take_gpu_slowness(flags), 1);
  for (const char* bad : {"cuda=", "cuda=0.5", "cuda=2x", "cuda=nan"}) {
    std::vector<std::string> wrong{bad};
    EXPECT_THAT(error_text([&] { take_gpu_slowness(wrong); }), HasSubstr("cuda=FACTOR")) << bad;
  }
}

// A job whose costs are guessed: nothing of this machine's profile.
TrainJob job_of(std::int64_t batch, int workers) {
  JobOptions options;
  options.model = "lenet5";
  options.data = "synth:1x28x28/10@600";
  options.test = "none";
  options.batch = batch;
  options.workers = workers;
  TrainJob job = make_job(options);
  job.profile = std::make_shared<const Profile>();
  return job;
}

TEST(SlowWorkers, AGpuIsSlowedDownInThePlanThatHasOne) {
  TrainJob job = job_of(64, 2);
  EXPECT_THAT(error_text([&] { slow_down(job.plan, {"cuda=2"}); }),
              HasSubstr("--slow cuda=2: no GPU computes in this plan"));
  PlanOptions both{.workers = 2, .devices = {DeviceKind::cpu, DeviceKind::cuda}};
  both.shares = {32, 32};
  both.chunks = {2};
  job.plan = make_plan(job.graph, job.recipe, both);
  slow_down(job.plan, {"cuda=2", "1=3"});
  EXPECT_EQ(job.plan.nodes[0].groups[0].slow, (std::vector<double>{1, 3}));
  EXPECT_EQ(job.plan.nodes[0].groups[1].slow, std::vector<double>{2});
}

TEST(Balance, ChunksThatOutnumberWorkersKeepTheirLanes) {
  TrainJob job = job_of(64, 2);
  DeviceGroup& group = job.plan.nodes[0].groups[0];
  group.workers = group.lanes = 2;
  group.chunks = {16, 16, 16, 16};
  give_chunks(job.plan, {10, 20, 14, 20});
  EXPECT_EQ(group.chunks, (std::vector<std::int64_t>{10, 20, 14, 20}));
  EXPECT_EQ(group.lanes, 2);
}

TEST(WorkerShares, AreAlikeOrFollowTheSpeed) {
  TrainJob job = job_of(300, 2);
  const auto shared = [&](WorkerShares shares) {
    share_among_workers(job, shares, 2, {"1=2"});
    return job.plan.nodes[0].groups[0].chunks;
  };
  EXPECT_EQ(shared(WorkerShares::equal), (std::vector<std::int64_t>{150, 150}));
  EXPECT_EQ(job.plan.placement, Placement::hybrid);
  const std::vector<std::int64_t> uneven = shared(WorkerShares::speed);
  EXPECT_EQ(uneven[0] + uneven[1], 300);
  EXPECT_NEAR(static_cast<double>(uneven[0]) / static_cast<double>(uneven[1]), 2, 0.15);
  EXPECT_EQ(faults(job.plan, job.graph, 300), std::vector<std::string>{});
}

TEST(WorkerShares, AreTriedOutAndTheLateWorkerGetsFewer) {
  // By an empty profile, which guesses, but steps tell how long each really takes.
  TrainJob job = job_of(300, 2);
  share_among_workers(job, WorkerShares::speed, 2, {"1=4"});
  balance_by_trials(job, Seconds(0.01), Seconds(1.2), Keep::nowhere);
  const std::vector<std::int64_t> uneven = job.plan.nodes[0].groups[0].chunks;
  EXPECT_EQ(uneven[0] + uneven[1], 300);
  EXPECT_GT(uneven[0], 2 * uneven[1]);
  EXPECT_EQ(faults(job.plan, job.graph, 300), std::vector<std::string>{});
}

TEST(WorkerShares, NeedASampleForEveryWorker) {
  TrainJob job = job_of(3, 2);
  EXPECT_THAT(error_text([&] { share_among_workers(job, WorkerShares::speed, 4, {}); }),
              HasSubstr("a batch of 3"));
}

TEST(TrainUnequal, SlownessAndSharesStandInTheRunsPlan) {
  const TemporaryFolder folder;
  const auto out = folder.path() / "run";
  const ProgramRun run =
      run_regatta({"train",     "--model",       "lenet5",  "--data", "synth:1x28x28/10@240",
                   "--test",    "none",          "--batch", "24",     "--workers",
                   "2",         "--granularity", "fixed",   "--slow", "1=1.5",
                   "--shares",  "equal",         "--steps", "4",      "--out",
                   out.string()});
  ASSERT_EQ(run.code, 0) << run.err;
  const DeviceGroup group = read_run_json(out).job.plan.nodes[0].groups[0];
  EXPECT_EQ(group.chunks, (std::vector<std::int64_t>{12, 12}));
  EXPECT_EQ(group.slow, (std::vector<double>{1, 1.5}));
}

TEST(TrainUnequal, MistakesAreTold) {
  const TemporaryFolder folder;
  const auto train = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"train",
                                       "--model",
                                       "lenet5",
                                       "--data",
                                       "synth:1x28x28/10@240",
                                       "--test",
                                       "none",
                                       "--batch",
                                       "24",
                                       "--workers",
                                       "2",
                                       "--granularity",
                                       "fixed",
                                       "--steps",
                                       "4",
                                       "--out",
                                       (folder.path() / "run").string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramRun run = run_regatta(arguments);
    EXPECT_EQ(run.code, 2);
    return run.err;
  };
  EXPECT_THAT(train({"--slow", "5=2"}), HasSubstr("workers 0 to 1"));
  EXPECT_THAT(train({"--slow", "1"}), HasSubstr("WORKER=FACTOR"));
  EXPECT_THAT(train({"--shares", "speed", "--chunks", "3"}), HasSubstr("drop --chunks"));
  EXPECT_THAT(train({"--shares", "fast"}), HasSubstr("use equal, speed, or samples of each"));
}

}  // namespace
}  // namespace regatta
