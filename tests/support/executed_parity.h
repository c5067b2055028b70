// Training a fixture's model through the executor, held to the yardstick.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "parity/fixtures.h"
#include "support/executor_run.h"

namespace regatta {

// Expects logits, losses, gradients and running statistics to be as near to PyTorch's float64 as
// its own float32 is, or its own bf16; returns the run.
inline ExecutedRun expect_parity(const char* model, const PlanOptions& options,
                                 Precision precision = Precision::fp32) {
  const bool bf16 = precision == Precision::bf16;
  const Fixture fixture = bf16 ? Fixture::load_for_bf16(model) : Fixture::load(model);
  const Yardstick by = bf16 ? yardstick_of_bf16 : Yardstick{};
  const Graph graph = fuse(fixture.graph());
  const Plan plan = plan_for(graph, fixture.images(), options);
  ExecutedRun run = execute(graph, plan, make_input<float>(graph, fixture.images(), fixture.calm()),
                            fixture.optimizer(), static_cast<int>(fixture.steps()), precision);
  EXPECT_EQ(fixture.compare_logits(std::span<const float>(run.logits), by), Failures{});
  EXPECT_EQ(fixture.compare_losses(run.losses, by), Failures{});
  EXPECT_EQ(fixture.compare_gradients(graph, run.gradients, by), Failures{});
  EXPECT_EQ(fixture.compare_states(graph, run.states, by), Failures{});
  if (std::getenv("REGATTA_PARITY")) std::printf("%s\n", fixture.summary().c_str());
  return run;
}

}  // namespace regatta
