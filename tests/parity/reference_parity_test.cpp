// The reference kernels against PyTorch: in double they are its float64, in float they are as near
// to it as its own float32. What is held to the reference is thereby held to PyTorch.
#include <gtest/gtest.h>

#include <utility>

#include "parity/fixtures.h"
#include "parity/formula.h"
#include "support/reference_run.h"

namespace regatta {
namespace {

// Double against double: only the order of sums differs.
constexpr Yardstick exactly{.times = 0, .floor = 1e-9};

template <class T>
void expect_parity(std::string_view model, std::size_t steps, const Yardstick& by) {
  const Fixture fixture = Fixture::load(model);
  const Graph graph = fuse(fixture.graph());
  ReferenceInput<T> input = make_input<T>(graph, fixture.images());

  const ReferenceResult<T> before = reference_run(graph, input, Pass::evaluate);
  const std::span<const T> logits = before.values[graph.logits().value];
  EXPECT_EQ(fixture.compare_logits(logits, by), Failures{});

  Tensors<T> velocities;
  std::vector<double> losses;
  for (std::size_t step = 0; step < steps; ++step) {
    input.step = step;
    ReferenceResult<T> result = reference_run(graph, input);
    losses.push_back(result.loss);
    if (step == 0) {
      EXPECT_EQ(fixture.compare_gradients(graph, result.parameter_gradients, by), Failures{});
      EXPECT_EQ(fixture.compare_states(graph, result.states, by), Failures{});
    }
    fixture.optimizer().step(input.parameters, result.parameter_gradients, velocities);
    input.states = std::move(result.states);
  }
  EXPECT_EQ(fixture.compare_losses(losses, by), Failures{});
}

TEST(ReferenceParity, TinyInDouble) { expect_parity<double>("tiny", 10, exactly); }
TEST(ReferenceParity, TinyInFloat) { expect_parity<float>("tiny", 10, {}); }
TEST(ReferenceParity, LeNet5InDouble) { expect_parity<double>("lenet5", 10, exactly); }
TEST(ReferenceParity, LeNet5InFloat) { expect_parity<float>("lenet5", 10, {}); }

// Plain loops take seconds a step here, so one step must do.
TEST(ReferenceParity, ResNet18InDouble) { expect_parity<double>("resnet18", 1, exactly); }
TEST(ReferenceParity, ResNet18InFloat) { expect_parity<float>("resnet18", 1, {}); }
TEST(ReferenceParity, ResNet50InDouble) { expect_parity<double>("resnet50", 1, exactly); }

}  // namespace
}  // namespace regatta
