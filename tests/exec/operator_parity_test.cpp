// Each operator against PyTorch's float64: by the reference kernels, and through plan, tasks and
// StarPU, whole and in uneven chunks.
#include <gtest/gtest.h>

#include "parity/operator_networks.h"
#include "support/executed_parity.h"

namespace regatta {
namespace {

class OperatorParity : public testing::TestWithParam<const char*> {};

TEST_P(OperatorParity, TheReferenceInDoubleIsPyTorchs) {
  const Fixture fixture = Fixture::load(GetParam());
  const Graph graph = fixture.graph();
  const Yardstick exactly{.times = 0, .floor = 1e-9};
  ReferenceInput<double> input = make_input<double>(graph, fixture.images());
  const ReferenceResult<double> before = reference_run(graph, input, Pass::evaluate);
  EXPECT_EQ(
      fixture.compare_logits(std::span<const double>(before.values[graph.logits().value]), exactly),
      Failures{});
  Tensors<double> velocities;
  std::vector<double> losses;
  for (; input.step < 2; ++input.step) {
    ReferenceResult<double> result = reference_run(graph, input);
    losses.push_back(result.loss);
    if (input.step == 0) {
      EXPECT_EQ(fixture.compare_gradients(graph, result.parameter_gradients, exactly), Failures{});
      EXPECT_EQ(fixture.compare_states(graph, result.states, exactly), Failures{});
    }
    fixture.optimizer().step(input.parameters, result.parameter_gradients, velocities);
    input.states = std::move(result.states);
  }
  EXPECT_EQ(fixture.compare_losses(losses, exactly), Failures{});
}

TEST_P(OperatorParity, IsAsNearToFloat64AsPyTorchsFloat32) {
  for (const std::vector<std::int64_t>& chunks :
       {std::vector<std::int64_t>{1}, std::vector<std::int64_t>{3, 1, 4}})
    for (const char* segments : {"op", "step"}) {
      SCOPED_TRACE(std::to_string(chunks.size()) + " chunks, segments " + segments);
      PlanOptions options;
      options.workers = 2;
      options.chunks = chunks;
      options.segments = segments;
      expect_parity(GetParam(), options);
    }
}

INSTANTIATE_TEST_SUITE_P(Networks, OperatorParity, testing::ValuesIn(operator_network_names()),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace regatta
