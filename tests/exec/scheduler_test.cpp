// Our policy inside StarPU.
#include "exec/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exec/runtime.h"
#include "models/models.h"
#include "parity/formula.h"
#include "support/executor_run.h"

namespace regatta {
namespace {

TEST(Scheduler, OursIsTheDefaultAndIsListedFirst) {
  EXPECT_EQ(scheduler_names().front(), own_scheduler);
  EXPECT_EQ(Plan{}.scheduler, own_scheduler);
  EXPECT_EQ(PlanOptions{}.scheduler, own_scheduler);
}

TEST(Scheduler, TrainsLikeStarPusOwn) {
  const Graph graph = fuse(build_model("resnet18", {.input = Shape{3, 32, 32}, .classes = 10}));
  const ReferenceInput<float> input = make_input<float>(graph, 9);
  const ReferenceSgd sgd{.learning_rate = 0.01};
  PlanOptions options{.workers = 3, .chunks = std::vector<std::int64_t>{2, 4, 3}};
  const ExecutedRun ours = execute(graph, plan_for(graph, 9, options), input, sgd, 3);
  options.scheduler = "eager";
  const ExecutedRun theirs = execute(graph, plan_for(graph, 9, options), input, sgd, 3);
  EXPECT_EQ(ours.losses, theirs.losses);
  EXPECT_EQ(ours.parameters, theirs.parameters);
}

TEST(Scheduler, RunsTheTasksThatStarPuMakesByItself) {
  const Graph graph = fuse(build_model("lenet5"));
  const ReferenceInput<float> input = make_input<float>(graph, 12);
  const PlanOptions options{
      .workers = 2, .chunks = std::vector<std::int64_t>{4}, .reduction = Reduction::redux};
  const ExecutedRun run =
      execute(graph, plan_for(graph, 12, options), input, {.learning_rate = 0.01}, 3);
  const ReferenceInput<double> exact = make_input<double>(graph, 12);
  EXPECT_NEAR(run.losses.front(), reference_run(graph, exact).loss, 1e-5);
}

ExecOptions of_bytes() {
  return {
      .numbers = {.samples = Dtype::u8}, .normalisation = {1.0f, {0.0f}, {1.0f}}, .training = true};
}

StepInput black_images() {
  StepInput input;
  input.samples = 32;
  input.load = [](std::int64_t, std::int64_t count, std::byte* samples, Target* targets) {
    std::fill_n(samples, count * 28 * 28, std::byte{0});
    std::fill_n(targets, count, Target::of(0));
  };
  return input;
}

TEST(Scheduler, CountsWhatWorkersDo) {
  const Graph graph = fuse(build_model("lenet5"));
  const PlanOptions options{.workers = 2, .chunks = std::vector<std::int64_t>{2}};
  Executor executor(graph, plan_for(graph, 32, options), of_bytes());
  const StepInput input = black_images();
  executor.wait(executor.submit(ListKind::prepare, {}));
  const WorkerLoad before = executor.load();
  for (int i = 0; i < 20; ++i) executor.wait(executor.submit(ListKind::train, input));
  const WorkerLoad after = executor.load();
  EXPECT_EQ(after.workers, 2);
  EXPECT_GT(after.kernels, before.kernels);
  EXPECT_GT(after.runtime, before.runtime);
  EXPECT_EQ(after.lists - before.lists, 20);
  EXPECT_GT(after.handing_over, before.handing_over);
  EXPECT_LT(after.handing_over - before.handing_over, after.when - before.when);
  EXPECT_LE(after.kernels + after.runtime - before.kernels - before.runtime,
            2 * (after.when - before.when));
}

}  // namespace
}  // namespace regatta
