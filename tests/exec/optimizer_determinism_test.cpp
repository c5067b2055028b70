// Every optimizer, clipped and averaged, has the same bits for any number of workers.
#include <gtest/gtest.h>

#include "models/models.h"
#include "parity/formula.h"
#include "support/executor_run.h"

namespace regatta {
namespace {

class OptimizerBits : public testing::TestWithParam<OptimizerKind> {};

TEST_P(OptimizerBits, AreTheSameForAnyWorkers) {
  const Graph graph = fuse(build_model("lenet5"));
  const ReferenceInput<float> input = make_input<float>(graph, 96);
  OptimizerSettings settings = default_settings(GetParam());
  settings.learning_rate /= 10;  // three steps downhill for any of them
  settings.clip_norm = 0.5;
  settings.ema = 0.9;
  std::optional<ExecutedRun> first;
  for (const int workers : {1, 2, 4}) {
    PlanOptions options{.workers = workers};
    options.deterministic = true;
    options.segments = "block";
    const ExecutedRun run = execute_by(settings, graph, plan_for(graph, 96, options), input, 3);
    if (!first) first = run;
    ASSERT_EQ(run.losses, first->losses) << workers;
    ASSERT_EQ(run.parameters, first->parameters) << workers;
  }
  EXPECT_LT(first->losses[2], first->losses[0]);
}

INSTANTIATE_TEST_SUITE_P(Every, OptimizerBits,
                         testing::Values(OptimizerKind::sgd, OptimizerKind::nesterov,
                                         OptimizerKind::adam, OptimizerKind::adamw,
                                         OptimizerKind::rmsprop, OptimizerKind::lars),
                         [](const auto& each) { return std::string(optimizer_name(each.param)); });

}  // namespace
}  // namespace regatta
