#include "train/memory_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/cpu/cpu_backend.h"
#include "data/npy.h"
#include "exec/runtime.h"
#include "support/error_text.h"
#include "support/temporary_folder.h"
#include "train/loop.h"
#include "train/weights.h"

namespace regatta {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TrainJob job_of(std::int64_t batch, std::int64_t accumulate = 1) {
  JobOptions options;
  options.model = "lenet5";
  options.data = "synth:1x28x28/10@256";
  options.batch = batch;
  options.accumulate = accumulate;
  options.workers = 2;
  return make_job(options);
}

std::vector<MemoryLimit> leaves(std::size_t bytes) {
  return {{"the machine", 1 << 30, 1 << 30},
          {"ulimit -v", 700'000'000, static_cast<std::int64_t>(bytes)}};
}

TEST(MemoryCheck, KnowsTheBuffersOfARunBeforehand) {
  for (const std::int64_t accumulate : {1, 3}) {
    const TrainJob job = job_of(32, accumulate);
    Executor executor(job.graph, job.plan, job.exec_options(true));
    initialise_weights(executor, 1);
    TrainGoal goal;
    goal.last_step = 3;
    TrainObserver nobody;
    train(executor, job.recipe, job.data, job.test, goal, nobody);
    EXPECT_EQ(buffer_bytes_of(job, job.plan), executor.buffer_bytes()) << accumulate;
  }
}

TEST(MemoryCheck, KnowsTheBuffersOfAnEvaluationBeforehand) {
  const TrainJob job = job_of(32);
  Executor executor(job.graph, job.plan, job.exec_options(false));
  for (std::uint32_t i = 0; i < job.graph.parameters().size(); ++i)
    executor.set_parameter(ParameterId{i}, executor.parameter(ParameterId{i}));
  evaluate(executor, job.data, job.recipe.batch);
  EXPECT_EQ(buffer_bytes_of(job, job.plan, Purpose::evaluation), executor.buffer_bytes());
  const BytesByKind kinds = memory_by_kind(job, job.plan, Purpose::evaluation);
  EXPECT_GE(kinds.at(workspace_kind), executor.workspace_bytes());
  EXPECT_LT(memory_needed(job, job.plan, Purpose::evaluation),
            memory_needed(job, job.plan, Purpose::training));
}

// Compares bytes of buffers and of the kernels' workspace: of batches that are whole or cut, with
// segments computed again, with teams of threads, and in bf16.
TEST(MemoryCheck, KnowsWithinThreePercentWhatTrainingAllocates) {
  struct Case {
    const char* model;
    const char* data;
    const char* segments;
    const char* recompute = nullptr;
    std::int64_t chunks = 1;
    int team = 1;
    Precision precision = Precision::fp32;
  };
  for (const Case& each :
       {Case{"lenet5", "synth:1x28x28/10@64", "step"},
        Case{.model = "resnet20", .data = "synth:3x16x16/10@64", .segments = "step", .chunks = 2},
        Case{"resnet20", "synth:3x16x16/10@64", "block", "all", 2},
        Case{.model = "resnet20", .data = "synth:3x16x16/10@64", .segments = "step", .team = 2},
        Case{.model = "resnet20",
        .data = "synth:3x16x16/10@64",
        .segments = "step",
        .chunks = 2,
        .precision = Precision::bf16},
        Case{.model = "mobilenet_v2",
        .data = "synth:3x32x32/10@64",
        .segments = "block",
        .chunks = 2},
        Case{"squeezenet1_1", "synth:3x64x64/10@64", "step"}}) {
    SCOPED_TRACE(std::string(each.model) + " " + each.segments + " " +
                 std::string(precision_name(each.precision)));
    if (!cpu::hindrance(each.precision).empty()) continue;
    JobOptions options;
    options.model = each.model;
    options.data = each.data;
    options.batch = 8;
    options.test = "none";
    options.workers = 2;
    options.precision = each.precision;
    options.plan.team = each.team;
    options.plan.segments = each.segments;
    if (each.recompute) options.plan.recompute = each.recompute;
    options.plan.chunks = {each.chunks};
    const TrainJob job = make_job(options);
    Executor executor(job.graph, job.plan, job.exec_options(true));
    initialise_weights(executor, 1);
    TrainGoal goal;
    goal.last_step = 8;
    TrainObserver nobody;
    train(executor, job.recipe, job.data, nullptr, goal, nobody);
    EXPECT_EQ(buffer_bytes_of(job, job.plan), executor.buffer_bytes());
    const std::size_t workspace = memory_by_kind(job, job.plan).at(workspace_kind);
    EXPECT_GE(workspace, executor.workspace_bytes());
    const auto allocated =
        static_cast<double>(executor.buffer_bytes() + executor.workspace_bytes());
    EXPECT_NEAR(static_cast<double>(memory_needed(job, job.plan, Purpose::training)), allocated,
                0.03 * allocated);
    // With several workers, one may have run no task of the kind that needs the most.
    if (groups_of(job.plan).front()->workers == 1) {
      EXPECT_EQ(workspace, executor.workspace_bytes());
    }
  }
}

// The gradients of weights are summed in memory of each thread.
TEST(MemoryCheck, ATeamNeedsTheWorkspaceOfItsThreads) {
  JobOptions options;
  options.model = "resnet20";
  options.data = "synth:3x16x16/10@64";
  options.batch = 16;
  options.workers = 8;
  options.plan.chunks = {1};
  const auto workspace_of = [&](int team) {
    options.plan.team = team;
    const TrainJob job = make_job(options);
    EXPECT_EQ(groups_of(job.plan).front()->workers, 1);
    return memory_by_kind(job, job.plan).at(workspace_kind);
  };
  EXPECT_LT(workspace_of(1), workspace_of(8));
}

TEST(MemoryCheck, WhereBuffersFitButNotTheWorkspaceOfKernelsARunIsRefused) {
  const TrainJob job = job_of(64);
  const BytesByKind kinds = memory_by_kind(job, job.plan);
  const std::size_t needed = memory_needed(job, job.plan), workspace = kinds.at(workspace_kind);
  ASSERT_GT(workspace, 0u);
  EXPECT_TRUE(fits(job, job.plan, leaves(needed)));
  for (const std::size_t lacking : {std::size_t{1}, workspace / 2, workspace}) {
    EXPECT_FALSE(fits(job, job.plan, leaves(needed - lacking)));
    EXPECT_THAT(error_text([&] { require_memory(job, job.plan, leaves(needed - lacking)); }),
                AllOf(HasSubstr("--batch 64 needs "), HasSubstr(" or less fits")));
  }
}

TEST(MemoryCheck, ARefusalNamesWhatMostMemoryIsFor) {
  const TrainJob job = job_of(64);
  EXPECT_THAT(error_text([&] { require_memory(job, job.plan, leaves(1000)); }),
              AllOf(HasSubstr(" of memory (values inside segments "),
                    HasSubstr("workspace of kernels "), HasSubstr(", the rest ")));
}

TEST(MemoryCheck, ARunThatFitsPasses) {
  const TrainJob job = job_of(64);
  require_memory(job, job.plan, leaves(2 * memory_needed(job, job.plan)));
  require_memory(job, job.plan, {});
}

TEST(MemoryCheck, ARunThatDoesNotFitNamesTheLimitAndABatchThatDoes) {
  const TrainJob large = job_of(128);
  const auto tight = leaves(memory_needed(job_of(48), job_of(48).plan));
  const std::string said = error_text([&] { require_memory(large, large.plan, tight); });
  EXPECT_THAT(said, AllOf(HasSubstr("--batch 128 needs "), HasSubstr("but ulimit -v with 700 MB"),
                          HasSubstr(" left; --batch ")));
  const std::size_t at = said.rfind("--batch ") + 8;
  const std::int64_t advised = std::stoll(said.substr(at));
  EXPECT_GE(advised, 32);
  EXPECT_LE(advised, 64);
  const TrainJob smaller = job_of(advised);
  require_memory(smaller, smaller.plan, tight);
}

// Stacks of threads take address space, which ulimit -v counts; little of it is ever written.
TEST(MemoryCheck, WhereWhatIsMappedCountsThreadsDo) {
  const TrainJob job = job_of(32);
  MemoryLimit limit{"ulimit -v", 700'000'000, 0};
  limit.counts_mapped = true;
  const auto needed = static_cast<std::int64_t>(memory_needed(job, job.plan));
  const std::int64_t mapped = bytes_mapped(limit, threads_of(job.plan));
  EXPECT_GT(bytes_mapped(limit, 2), bytes_mapped(limit, 1));
  EXPECT_EQ(bytes_mapped({"the machine", 1 << 30, 1 << 30}, 2), 0);
  limit.left = needed + mapped;
  EXPECT_FALSE(fits(job, job.plan, {limit})) << "kernels compile code too";
  EXPECT_THAT(error_text([&] { require_memory(job, job.plan, {limit}); }),
              AllOf(HasSubstr(std::string(runtime_kind) + " "), HasSubstr(" or less fits")));
  // The limit that leaves the least is not the one with the least left.
  const MemoryLimit machine{"the machine", 1 << 30, needed + mapped / 2};
  EXPECT_THAT(error_text([&] {
                require_memory(job, job.plan, {machine, limit});
              }),
              HasSubstr("but ulimit -v with 700 MB"));
  limit.left = needed + 2 * mapped;
  EXPECT_TRUE(fits(job, job.plan, {limit}));
}

TEST(MemoryCheck, ARunThatWritesNoCheckpointNeedsNoMemoryForOne) {
  const TrainJob job = job_of(32);
  const auto room = leaves(memory_needed(job, job.plan, Purpose::training));
  require_memory(job, job.plan, room, Purpose::training);
  EXPECT_THAT(error_text([&] { require_memory(job, job.plan, room, Purpose::saved_training); }),
              HasSubstr("--batch 32 needs "));
}

// The plan alone says what a GPU's memory must hold, on any machine.
TEST(MemoryCheck, AShareThatDoesNotFitIntoTheGpuNamesABatchThatDoes) {
  const auto on_gpu = [](std::int64_t batch) {
    TrainJob job = job_of(batch);
    PlanOptions options{.workers = 2};
    options.devices = {DeviceKind::cuda};
    job.plan = make_plan(job.graph, job.recipe, options);
    return job;
  };
  const TrainJob large = on_gpu(128), fitting = on_gpu(48);
  const MemoryLimit gpu{"the GPU", 1 << 30,
                        static_cast<std::int64_t>(gpu_memory_needed(fitting, fitting.plan))};
  require_gpu_memory(fitting, fitting.plan, gpu);
  EXPECT_THAT(error_text([&] { require_gpu_memory(large, large.plan, gpu); }),
              AllOf(HasSubstr("--batch 128 needs "), HasSubstr("but the GPU with 1074 MB"),
                    HasSubstr("--batch 48 or less fits"), HasSubstr(", or --devices cpu")));
  EXPECT_TRUE(fits_gpu(fitting, fitting.plan, gpu));
  EXPECT_FALSE(fits_gpu(large, large.plan, gpu));
  const TrainJob on_cores = job_of(128);
  EXPECT_TRUE(fits_gpu(on_cores, on_cores.plan, {"the GPU", 1 << 30, 0}));
}

// The largest of VGG-11's gradients behind a relu: those of the convolutions before each pooling
// are rectified after it, so that of the third convolution, 256 channels of 8x8.
TEST(MemoryCheck, AGpuKeepsTheGradientBehindARelu) {
  JobOptions options;
  options.model = "vgg11";
  options.data = "synth:3x32x32/10@64";
  options.batch = 16;
  TrainJob job = make_job(options);
  PlanOptions on_gpu{.workers = 2};
  on_gpu.devices = {DeviceKind::cuda};
  const Plan plan = make_plan(job.graph, job.recipe, on_gpu);
  EXPECT_EQ(gpu_memory_by_kind(job, plan).at(workspace_kind), 16u * 256 * 8 * 8 * sizeof(float));
  EXPECT_FALSE(gpu_memory_by_kind(job, job.plan).contains(workspace_kind)) << "a plan of CPUs";
}

TEST(MemoryCheck, WhereNothingFitsItSaysSo) {
  const TrainJob job = job_of(8);
  EXPECT_THAT(error_text([&] { require_memory(job, job.plan, leaves(1000)); }),
              HasSubstr("not even --batch 1 fits"));
}

TEST(MemoryCheck, DataThatIsReadIntoMemoryCounts) {
  const TemporaryFolder folder;
  const auto images = folder.path() / "x.npy", labels = folder.path() / "y.npy";
  write_npy(images, {Dtype::u8, {500, 28, 28}, std::string(500 * 28 * 28, '\1')});
  write_npy(labels, {Dtype::u8, {500}, std::string(500, '\1')});
  const std::string spec = "npy:" + images.string() + "," + labels.string();
  EXPECT_THAT(
      error_text([&] { require_memory_of_data(spec, Split::train, leaves(300'000)); }),
      AllOf(HasSubstr("x.npy"), HasSubstr("but ulimit -v"), HasSubstr("regatta data prepare")));
  require_memory_of_data(spec, Split::train, leaves(400'000));
  require_memory_of_data("mnist", Split::train, leaves(0));
}

}  // namespace
}  // namespace regatta
