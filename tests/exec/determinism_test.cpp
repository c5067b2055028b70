// --deterministic: the same bits for any number of workers and any scheduler.
#include <gtest/gtest.h>

#include "base/error.h"
#include "models/models.h"
#include "parity/formula.h"
#include "support/executor_run.h"

namespace regatta {
namespace {

void expect_same_bits(const Graph& graph, std::int64_t batch) {
  const ReferenceInput<float> input = make_input<float>(graph, batch);
  const ReferenceSgd sgd{.learning_rate = 0.01, .momentum = 0.9, .weight_decay = 1e-4};
  std::optional<ExecutedRun> first;
  for (const int workers : {1, 2, 4})
    for (const char* scheduler : {"regatta", "lws", "eager", "dmda"})
      for (int repetition = 0; repetition < 5; ++repetition) {
        PlanOptions options;
        options.workers = workers;
        options.scheduler = scheduler;
        options.deterministic = true;
        const ExecutedRun run = execute(graph, plan_for(graph, batch, options), input, sgd, 3);
        if (!first) first = run;
        ASSERT_EQ(run.losses, first->losses) << workers << " workers, " << scheduler;
        ASSERT_EQ(run.parameters, first->parameters) << workers << " workers, " << scheduler;
      }
}

TEST(Deterministic, LeNet5HasTheSameBitsForAnyWorkersAndScheduler) {
  const Graph graph = fuse(build_model("lenet5"));
  ASSERT_GT(chunks_of(plan_for(graph, 96, {.workers = 1, .deterministic = true})).size(), 1u);
  expect_same_bits(graph, 96);
}

TEST(Deterministic, ResNet18HasTheSameBitsForAnyWorkersAndScheduler) {
  const Graph graph = fuse(build_model("resnet18", {.input = Shape{3, 32, 32}, .classes = 10}));
  ASSERT_GT(chunks_of(plan_for(graph, 12, {.workers = 1, .deterministic = true})).size(), 1u);
  expect_same_bits(graph, 12);
}

TEST(Deterministic, RefusesStarPusOwnReduction) {
  const Graph graph = fuse(build_model("tiny"));
  EXPECT_THROW(
      plan_for(graph, 8, {.workers = 1, .reduction = Reduction::redux, .deterministic = true}),
      InputError);
}

}  // namespace
}  // namespace regatta
