// Training a fixture's model through the executor, held to the yardstick.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "parity/fixtures.h"
#include "support/executor_run.h"

namespace regatta {

// Expects logits, losses, gradients and running statistics to be as near to PyTorch's float64 as
// its own float32 is; returns the run.
inline ExecutedRun expect_parity(const char* model, const PlanOptions& options) {
  const Fixture fixture = Fixture::load(model);
  const Graph graph = fuse(fixture.graph());
  const Plan plan = plan_for(graph, fixture.images(), options);
  ExecutedRun run = execute(graph, plan, make_input<float>(graph, fixture.images(), fixture.calm()),
                            fixture.optimizer(), static_cast<int>(fixture.steps()));
  EXPECT_EQ(fixture.compare_logits(std::span<const float>(run.logits), {}), Failures{});
  EXPECT_EQ(fixture.compare_losses(run.losses, {}), Failures{});
  EXPECT_EQ(fixture.compare_gradients(graph, run.gradients, {}), Failures{});
  EXPECT_EQ(fixture.compare_states(graph, run.states, {}), Failures{});
  if (std::getenv("REGATTA_PARITY")) std::printf("%s\n", fixture.summary().c_str());
  return run;
}

}  // namespace regatta
