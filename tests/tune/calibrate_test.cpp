#include "tune/calibrate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "support/small_run.h"
#include "support/temporary_folder.h"
#include "tasks/costs.h"
#include "train/weights.h"
#include "tune/plan_job.h"
#include "tune/refine.h"

namespace regatta {
namespace {

TrainJob job_of(std::int64_t batch, int workers) {
  JobOptions options;
  options.network = small_network();
  options.data = "synth:1x6x6/3@200";
  options.batch = batch;
  options.workers = workers;
  options.plan.deterministic = true;
  return make_job(options);
}

TEST(Calibrate, AfterwardsAlmostAllOfAStepIsKnown) {
  const TrainJob job = job_of(16, 2);
  const auto profile = std::make_shared<Profile>();
  profile->learn(calibrate(job, quick_calibration(job, 2)));
  for (const std::int64_t chunks : {1, 2}) {
    PlanOptions plan{.workers = 2, .layout = default_cpu_layout()};
    plan.chunks = {chunks};
    const Blueprint blueprint = make_blueprint(
        job.graph, make_plan(job.graph, job.recipe, plan),
        {job.recipe.loaded_dtype(), job.recipe.precision, job.recipe.optimizer}, true);
    const ProfileCosts costs(blueprint, profile, job.recipe.data);
    EXPECT_GT(costs.measured_shares(lower(blueprint, ListKind::train), 1).near_size, 0.7) << chunks;
  }
  EXPECT_NE(profile->find("runtime task"), nullptr);
  EXPECT_NE(profile->find("runtime step"), nullptr);
  // No machine copies a byte in 100 ns, nor a gigabyte in a millisecond.
  ASSERT_NE(profile->find("runtime byte"), nullptr);
  const double byte = profile->find("runtime byte")->at(1, 1).seconds;
  EXPECT_LT(byte, 1e-7);
  EXPECT_GT(byte, 1e-12);
}

TEST(Calibrate, PlansThatDoNotFitIntoMemoryAreNotMeasured) {
  const TrainJob job = job_of(16, 2);
  CalibrationOptions calibration;
  calibration.workers = 2;
  calibration.runtime = false;
  std::set<std::size_t> asked;
  calibration.fits = [&](const Plan& plan) {
    asked.insert(chunks_of(plan).size());
    return false;
  };
  EXPECT_TRUE(calibrate(job, calibration).empty());
  EXPECT_THAT(asked, testing::IsSupersetOf({1u, 2u}));
}

// Chunks of tiny do not meet, so that teams are measured only where they are asked for: a profile
// that knows the network from a run on cores may lack those that share a batch with a GPU.
TEST(Calibrate, ATeamIsKnownOnceItWasMeasured) {
  JobOptions options;
  options.model = "tiny";
  options.data = "synth:1x28x28/10@64";
  options.batch = 16;
  options.workers = 2;
  const TrainJob job = make_job(options);
  const auto profile = std::make_shared<Profile>();
  const auto learn = [&](const std::vector<int>& more_teams) {
    CalibrationOptions calibration = quick_calibration(job, 2, more_teams);
    calibration.budget = Seconds(0.2);
    profile->learn(calibrate(job, calibration));
  };
  learn({});
  const PlanOptions plan{.workers = 2, .layout = default_cpu_layout()};
  EXPECT_TRUE(knows_team(job, plan, profile, 1));
  EXPECT_FALSE(knows_team(job, plan, profile, 2));
  learn({2});
  EXPECT_TRUE(knows_team(job, plan, profile, 2));
}

// Two teams of two work on two chunks, which meet at batch norm: that is how teams are measured.
TEST(Calibrate, ATeamWhoseChunksMeetIsKnownOnceItWasMeasured) {
  JobOptions options;
  options.model = "resnet20";
  options.data = "synth:3x8x8/10@64";
  options.batch = 8;
  options.workers = 4;
  const TrainJob job = make_job(options);
  const auto profile = std::make_shared<Profile>();
  CalibrationOptions calibration = quick_calibration(job, 4);
  calibration.budget = Seconds(0.2);
  profile->learn(calibrate(job, calibration));
  const PlanOptions plan{.workers = 4, .layout = default_cpu_layout()};
  EXPECT_TRUE(knows_team(job, plan, profile, 2));
}

TEST(Calibrate, WorkByBlocksIsMeasuredToo) {
  const TrainJob job = job_of(4, 2);
  CalibrationOptions calibration;
  calibration.workers = 2;
  calibration.budget = Seconds(10);
  calibration.enough = 1e9;  // the fewest rounds will do
  calibration.runtime = false;
  bool inside = false, shared = false, load = false;
  for (const Observation& each : calibrate(job, calibration)) {
    inside |= each.signature.starts_with("cpu") && each.signature.ends_with("| segment");
    shared |= each.signature.ends_with("| segment shared");
    load |= each.signature.starts_with("load") && of_segments(each.signature);
  }
  EXPECT_TRUE(inside);
  EXPECT_TRUE(shared);
  EXPECT_TRUE(load);
}

std::set<double> convolved_sizes(const std::vector<Observation>& all) {
  std::set<double> sizes;
  for (const Observation& each : all)
    if (each.signature.find("conv") != std::string::npos && each.signature.ends_with("| forward"))
      sizes.insert(each.size);
  return sizes;
}

TEST(Calibrate, MoreSamplesAreMeasuredAsLargerSizes) {
  const TrainJob job = job_of(16, 1);
  CalibrationOptions calibration;
  calibration.budget = Seconds(0.5);
  calibration.runtime = false;
  calibration.whole_chunks = true;  // on a busy machine too
  const std::set<double> sizes = convolved_sizes(calibrate(job, calibration));
  // Sizes between the smallest and the largest may be missing if a busy machine left no time.
  EXPECT_TRUE(sizes.contains(1));
  EXPECT_TRUE(sizes.contains(16));
  for (const double size : sizes)
    EXPECT_TRUE((std::set<double>{1, 2, 4, 8, 16}).contains(size)) << size;
}

TEST(Calibrate, WholeChunksAndHalvesAreMeasuredHoweverLittleTimeThereIs) {
  for (const int workers : {1, 2}) {
    const TrainJob job = job_of(64, workers);
    CalibrationOptions calibration;
    calibration.workers = workers;
    calibration.budget = Seconds(1e-3);
    calibration.runtime = false;
    calibration.whole_chunks = true;
    calibration.most_alone = 64 / workers;
    const std::vector<Observation> all = calibrate(job, calibration);
    const std::set<double> sizes = convolved_sizes(all);
    ASSERT_FALSE(sizes.empty());
    EXPECT_TRUE(sizes.contains(64 / workers)) << workers;
    EXPECT_TRUE(sizes.contains(32 / workers)) << workers;
    EXPECT_LE(*sizes.rbegin(), 64 / workers) << "nobody has larger ones";
  }
}

TEST(Calibrate, OneWorkerAloneIsMeasuredOnTheWholeBatchToo) {
  const TrainJob job = job_of(64, 2);
  CalibrationOptions calibration;
  calibration.workers = 2;
  calibration.budget = Seconds(1e-3);
  calibration.runtime = false;
  calibration.whole_chunks = true;
  const std::set<double> sizes = convolved_sizes(calibrate(job, calibration));
  EXPECT_TRUE(sizes.contains(64)) << "of two workers each has 32 at most";
}

TEST(Calibrate, BesideAGpuInTf32CoresAreMeasuredInFp32) {
  TrainJob job = job_of(4, 1);
  job.recipe.precision = Precision::tf32;
  CalibrationOptions calibration;
  calibration.budget = Seconds(1e-3);
  calibration.runtime = false;
  std::size_t convolutions = 0;
  for (const Observation& each : calibrate(job, calibration)) {
    EXPECT_EQ(each.signature.find("tf32"), std::string::npos) << each.signature;
    convolutions += each.signature.find(" fp32 | conv") != std::string::npos;
  }
  EXPECT_GT(convolutions, 0u);
}

// Nothing meets, so a step has as many tasks as workers, and chunks have one size.
TEST(Calibrate, AsManyWorkersAsSamplesWillDo) {
  JobOptions options;
  options.model = "tiny";
  options.data = "synth:1x28x28/10@64";
  options.batch = 2;
  options.workers = 2;
  options.plan.deterministic = true;
  const TrainJob job = make_job(options);
  CalibrationOptions calibration;
  calibration.workers = 2;
  calibration.budget = Seconds(0.05);
  calibration.runtime = false;
  const std::vector<Observation> all = calibrate(job, calibration);
  for (const Observation& each : all) EXPECT_GT(each.seconds, 0) << each.signature;
  // Side by side each has one sample, and one worker alone has both.
  EXPECT_THAT(convolved_sizes(all), testing::ElementsAre(1, 2));
}

// A training run that its profile may learn from.
class Refine : public testing::Test, protected TrainObserver {
 protected:
  // What storing had to say.
  std::string train_and_store(std::int64_t steps, Seconds shortest_run, const ProfileStore& store) {
    const TrainJob job = job_of(4, 1);
    Executor executor(job.graph, job.plan, job.exec_options(true));
    initialise_weights(executor, 1);
    Refinement refinement(executor, job.recipe, shortest_run);
    refinement_ = &refinement;
    train(executor, job.recipe, job.data, nullptr,
          {.from = {}, .last_step = steps, .after_first_step = {}}, *this);
    return refinement.store(store);
  }
  void on_step(const StepRecord& record) override { refinement_->on_step(record); }

  const TemporaryFolder folder_;
  const ProfileStore store_{machine_mark({}), folder_.path()};

 private:
  Refinement* refinement_ = nullptr;
};

TEST_F(Refine, ATrainingRunTeachesTheProfile) {
  EXPECT_EQ(train_and_store(50, Seconds(0), store_), "");
  // A loaded machine may have interrupted some of the five steps, hardly all.
  EXPECT_FALSE(store_.load().empty());
}

TEST_F(Refine, AShortRunLeavesTheProfileAlone) {
  EXPECT_EQ(train_and_store(20, Seconds(5), store_), "");
  EXPECT_FALSE(std::filesystem::exists(store_.file()));
}

TEST_F(Refine, AProfileThatCannotBeWrittenFailsNoRun) {
  const ProfileStore nowhere(machine_mark({}), folder_.file("file", "") / "below");
  const std::string said = train_and_store(30, Seconds(0), nowhere);
  EXPECT_NE(said.find("was not refined"), std::string::npos) << said;
}

}  // namespace
}  // namespace regatta
