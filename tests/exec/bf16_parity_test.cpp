// Training in bf16 on CPUs against PyTorch's float64: no further from it than three times PyTorch's
// own bf16.
#include <gtest/gtest.h>

#include "support/bf16_here.h"
#include "support/executed_parity.h"

namespace regatta {
namespace {

struct Case {
  const char* model;
  std::vector<std::int64_t> chunks;  // one number: so many equal chunks
  const char* segments;
};

std::string name_of(const Case& c) {
  return std::string(c.model) + (c.chunks.size() == 1 ? "_whole_" : "_uneven_") + c.segments;
}
void PrintTo(const Case& c, std::ostream* out) { *out << name_of(c); }

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* model : {"tiny", "lenet5", "resnet18", "resnet20", "mobilenet_v2",
                            "convolutions", "pools", "branches"}) {
    all.push_back({model, {1}, "step"});
    all.push_back({model, {3, 1, 4}, "block"});
  }
  return all;
}

class Bf16Parity : public testing::TestWithParam<Case> {};

TEST_P(Bf16Parity, IsAsNearToFloat64AsPyTorchsBf16) {
  SKIP_WITHOUT_BF16();
  const Case& c = GetParam();
  PlanOptions options;
  options.workers = 2;
  options.chunks = c.chunks;
  options.segments = c.segments;
  expect_parity(c.model, options, Precision::bf16);
}

INSTANTIATE_TEST_SUITE_P(Models, Bf16Parity, testing::ValuesIn(cases()),
                         [](const auto& each) { return name_of(each.param); });

TEST(Bf16Training, IsRefusedWhereTheProcessorHasNoInstructionsForIt) {
  EXPECT_EQ(cpu::hindrance(Precision::fp32, false), "");
  EXPECT_EQ(cpu::hindrance(Precision::bf16, true), "");
  EXPECT_EQ(
      cpu::hindrance(Precision::bf16, false),
      "--precision bf16 needs a processor that multiplies bf16 (avx512_bf16 or AMX), and this "
      "one does not: use --precision fp32, or --devices cuda");
}

TEST(Bf16Training, HasTheSameBitsForAnyNumberOfWorkers) {
  SKIP_WITHOUT_BF16();
  const Fixture fixture = Fixture::load("resnet20");
  const Graph graph = fuse(fixture.graph());
  const auto run_with = [&](int workers) {
    PlanOptions options;
    options.workers = workers;
    options.chunks = {3, 1, 4};
    options.segments = "block";
    options.deterministic = true;
    return execute(graph, plan_for(graph, fixture.images(), options),
                   make_input<float>(graph, fixture.images(), fixture.calm()), fixture.optimizer(),
                   3, Precision::bf16);
  };
  const ExecutedRun one = run_with(1), two = run_with(2);
  EXPECT_EQ(one.losses, two.losses);
  EXPECT_EQ(one.gradients, two.gradients);
  EXPECT_EQ(one.parameters, two.parameters);
  EXPECT_EQ(one.states, two.states);
}

}  // namespace
}  // namespace regatta
