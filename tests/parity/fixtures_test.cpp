// The measuring itself: what is right passes, what is wrong is named.
#include "parity/fixtures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "parity/formula.h"
#include "support/reference_run.h"

namespace regatta {
namespace {

TEST(Formula, GivesTheNumbersThatPyTorchIsGiven) {
  const Graph graph = Fixture::load("tiny").graph();
  const Tensors<float> weights = make_weights(graph);
  EXPECT_EQ(weights[0][0], -0x1.580f780000000p-4f);
  EXPECT_EQ(make_images(graph, 1)[783], -0x1.14c4180000000p-1f);
  EXPECT_EQ(make_labels(graph, 8), (std::vector<std::int32_t>{7, 5, 4, 6, 4, 2, 2, 5}));
}

TEST(Projections, EstimateTheNorm) {
  const std::vector<double> tensor(1000, 0.5);
  double sum = 0;
  for (const double projection : projections("any", std::span<const double>(tensor)))
    sum += projection * projection;
  EXPECT_NEAR(std::sqrt(sum / 16), std::sqrt(1000 * 0.25), 0.4 * std::sqrt(1000 * 0.25));
}

struct TinyStep {
  Fixture fixture = Fixture::load("tiny");
  Graph graph = fixture.graph();
  ReferenceResult<double> result =
      reference_run(graph, make_input<double>(graph, fixture.images()));
};

TEST(Fixture, AGradientOfASmallerBatchIsNamed) {
  TinyStep tiny;
  for (std::vector<double>& gradient : tiny.result.parameter_gradients)
    for (double& value : gradient) value *= 8.0 / 7.0;
  const Failures failures =
      tiny.fixture.compare_gradients(tiny.graph, tiny.result.parameter_gradients, {});
  ASSERT_EQ(failures.size(), 5u);
  EXPECT_TRUE(failures[0].starts_with("tiny: conv.weight: 1.")) << failures[0];
  EXPECT_TRUE(failures[4].starts_with("tiny: all tensors '*' together: 1.")) << failures[4];
}

TEST(Fixture, OneWrongElementIsFound) {
  TinyStep tiny;
  tiny.result.parameter_gradients[2][5] += 0.01;
  EXPECT_FALSE(
      tiny.fixture.compare_gradients(tiny.graph, tiny.result.parameter_gradients, {}).empty());
}

TEST(Fixture, NotANumberIsNeverNear) {
  TinyStep tiny;
  tiny.result.parameter_gradients[1][0] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(
      tiny.fixture.compare_gradients(tiny.graph, tiny.result.parameter_gradients, {}).empty());
  const std::vector<double> losses{std::nan("")};
  EXPECT_EQ(tiny.fixture.compare_losses(losses, {}).size(), 1u);
}

TEST(Fixture, ALossThatDriftsIsNamedByItsStep) {
  const TinyStep tiny;
  const std::vector<double> losses{tiny.result.loss, tiny.result.loss};
  const Failures failures = tiny.fixture.compare_losses(losses, {});
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_TRUE(failures[0].starts_with("tiny: loss of step 2: ")) << failures[0];
}

}  // namespace
}  // namespace regatta
