#include "train/calibrate.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "support/small_run.h"
#include "support/temporary_folder.h"
#include "tasks/costs.h"
#include "train/refine.h"
#include "train/weights.h"

namespace regatta {
namespace {

TEST(Calibrate, AfterwardsAlmostAllOfAStepIsKnown) {
  JobOptions options;
  options.network = small_network();
  options.data = "synth:1x6x6/3@64";
  options.batch = 16;
  options.workers = 2;
  const TrainJob job = make_job(options);
  const auto profile = std::make_shared<Profile>();
  profile->learn(calibrate_quickly(job.graph, job.recipe, job.data, 2, Seconds(1.5)));
  for (const std::int64_t chunks : {1, 2}) {
    PlanOptions plan{.workers = 2, .layout = default_cpu_layout()};
    plan.chunks = {chunks};
    const Blueprint blueprint = make_blueprint(
        job.graph, make_plan(job.graph, job.recipe, plan),
        {job.recipe.loaded_dtype(), job.recipe.precision, job.recipe.optimizer}, true);
    const ProfileCosts costs(blueprint, profile, job.recipe.data);
    EXPECT_GT(costs.known_share(lower(blueprint, Job::train), 1), 0.7) << chunks;
  }
  EXPECT_NE(profile->find("runtime task"), nullptr);
  EXPECT_NE(profile->find("runtime step"), nullptr);
}

TEST(Calibrate, MoreSamplesAreMeasuredAsLargerSizes) {
  JobOptions options;
  options.network = small_network();
  options.data = "synth:1x6x6/3@64";
  options.batch = 16;
  options.workers = 1;
  const TrainJob job = make_job(options);
  CalibrationOptions calibration;
  calibration.layout = default_cpu_layout();
  calibration.budget = Seconds(0.5);
  calibration.runtime = false;
  std::set<double> sizes;
  for (const Observation& each : calibrate(job.graph, job.recipe, job.data, calibration))
    if (each.signature.find("conv") != std::string::npos && each.signature.ends_with("| forward"))
      sizes.insert(each.size);
  // Those between are left out if a busy machine leaves no time for them.
  EXPECT_TRUE(sizes.contains(1));
  EXPECT_TRUE(sizes.contains(16));
  for (const double size : sizes)
    EXPECT_TRUE((std::set<double>{1, 2, 4, 8, 16}).contains(size)) << size;
}

TrainJob longer_job() {
  JobOptions options;
  options.network = small_network();
  options.data = "synth:1x6x6/3@200";
  options.batch = 4;
  options.workers = 1;
  options.plan.deterministic = true;
  return make_job(options);
}

struct Refining : TrainObserver {
  explicit Refining(Refinement& to) : refinement(to) {}
  void on_step(const StepRecord& record) override { refinement.on_step(record); }
  Refinement& refinement;
};

TEST(Refine, ATrainingRunTeachesTheProfile) {
  const TemporaryFolder folder;
  const ProfileStore store(machine_mark({}), folder.path());
  const TrainJob job = longer_job();
  Executor executor(job.graph, job.plan, job.exec_options(true));
  initialise_weights(executor, 1);
  Refinement refinement(executor, job.recipe, Seconds(0));
  Refining observer(refinement);
  train(executor, job.recipe, job.data, nullptr,
        {.from = {}, .last_step = 50, .after_first_step = {}}, observer);
  EXPECT_EQ(refinement.store(store), "");
  // A loaded machine may have interrupted some of the five steps, hardly all.
  const Profile profile = store.load();
  EXPECT_FALSE(profile.empty());
}

TEST(Refine, AShortRunLeavesTheProfileAlone) {
  const TemporaryFolder folder;
  const ProfileStore store(machine_mark({}), folder.path());
  const TrainJob job = longer_job();
  Executor executor(job.graph, job.plan, job.exec_options(true));
  initialise_weights(executor, 1);
  Refinement refinement(executor, job.recipe);
  Refining observer(refinement);
  train(executor, job.recipe, job.data, nullptr,
        {.from = {}, .last_step = 20, .after_first_step = {}}, observer);
  EXPECT_EQ(refinement.store(store), "");
  EXPECT_FALSE(std::filesystem::exists(store.file()));
}

TEST(Refine, AProfileThatCannotBeWrittenFailsNoRun) {
  const TemporaryFolder folder;
  const ProfileStore store(machine_mark({}), folder.file("file", "") / "below");
  const TrainJob job = longer_job();
  Executor executor(job.graph, job.plan, job.exec_options(true));
  initialise_weights(executor, 1);
  Refinement refinement(executor, job.recipe, Seconds(0));
  Refining observer(refinement);
  train(executor, job.recipe, job.data, nullptr,
        {.from = {}, .last_step = 30, .after_first_step = {}}, observer);
  EXPECT_NE(refinement.store(store).find("was not refined"), std::string::npos);
}

}  // namespace
}  // namespace regatta
