// The CPU kernels against the reference kernels: small networks in which each operator stands
// between parameters, so that its forward shows in the loss and its backward in their gradients.
#include <gtest/gtest.h>

#include "parity/formula.h"
#include "support/executor_run.h"
#include "support/small_networks.h"

namespace regatta {
namespace {

// What the CPU's padded channel blocks make worth a look besides.
std::vector<SmallNetwork> networks() {
  std::vector<SmallNetwork> all = small_networks();
  for (const SmallNetwork& network : more_small_networks()) all.push_back(network);
  const std::vector<SmallNetwork> more{
      {"conv_padded",
       {3, 9, 7},
       [](NetBuilder& n) {
         return head(n, n.conv("a", n.input(), {.channels = 5, .kernel = 3, .padding = 1}));
       }},
      {"conv_strided_relu",
       {2, 12, 11},
       [](NetBuilder& n) {
         NodeId x =
             n.conv("a", n.input(), {.channels = 18, .kernel = 5, .stride = 2, .padding = 2});
         x = n.conv("b", n.relu(x), {.channels = 6, .kernel = 3});
         return head(n, n.relu(x));
       }},
      {"conv_many_channels",
       {20, 6, 6},
       [](NetBuilder& n) {
         NodeId x = n.conv("a", n.input(), {.channels = 40, .kernel = 1, .bias = false});
         return head(n, n.conv("b", x, {.channels = 16, .kernel = 3, .padding = 1}));
       }},
      {"relu_after_pool",
       {1, 10, 10},
       [](NetBuilder& n) {
         NodeId x = n.conv("a", n.input(), {.channels = 4, .kernel = 3});
         return head(n, n.relu(n.max_pool(x, {.kernel = 2})));
       }},
      {"global_average",
       {3, 7, 5},
       [](NetBuilder& n) {
         NodeId x = n.conv("a", n.input(), {.channels = 19, .kernel = 2});
         return head(n, n.global_average_pool(x));
       }},
      {"plain_add",
       {3, 6, 6},
       [](NetBuilder& n) {
         NodeId x = n.conv("stem", n.input(), {.channels = 8, .kernel = 3});
         NodeId y = n.conv("a", x, {.channels = 8, .kernel = 3, .padding = 1});
         return head(n, n.relu(n.add(x, n.add(y, x))));
       }},
  };
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

class CpuKernels : public testing::TestWithParam<SmallNetwork> {};

TEST_P(CpuKernels, ComputeWhatTheReferenceComputes) {
  const Graph graph = build(GetParam());
  const ReferenceInput<double> exact = make_input<double>(graph, 9);
  const ReferenceResult<double> truth = reference_run(graph, exact);
  const ReferenceResult<double> evaluated = reference_run(graph, exact, Pass::evaluate);
  const ReferenceInput<float> input = make_input<float>(graph, 9);
  const auto as_float = [](const std::vector<double>& v) {
    return std::vector<float>(v.begin(), v.end());
  };
  for (const std::vector<std::int64_t>& chunks :
       {std::vector<std::int64_t>{1}, std::vector<std::int64_t>{4, 1, 2, 2}})
    for (const char* segments : {"step", "op", "2"}) {
      PlanOptions options;
      options.workers = 2;
      options.chunks = chunks;
      options.segments = segments;
      const ExecutedRun run = execute(graph, plan_for(graph, 9, options), input, {}, 1);
      const std::string plan = std::to_string(chunks.size()) + " chunks, segments " + segments;
      EXPECT_NEAR(run.losses[0], truth.loss, 2e-6 * std::max(1.0, truth.loss)) << plan;
      EXPECT_LT(relative_distance(run.logits, as_float(evaluated.values[graph.logits().value])),
                2e-6)
          << plan;
      double largest = 0;
      for (const auto& gradient : truth.parameter_gradients)
        for (const double value : gradient) largest = std::max(largest, std::abs(value));
      for (std::size_t p = 0; p < run.gradients.size(); ++p)
        for (std::size_t i = 0; i < run.gradients[p].size(); ++i)
          ASSERT_NEAR(run.gradients[p][i], truth.parameter_gradients[p][i], 5e-6 * largest)
              << graph.parameters()[p].name << "[" << i << "], " << plan;
      for (std::size_t s = 0; s < run.states.size(); ++s)
        EXPECT_LT(relative_distance(run.states[s], as_float(truth.states[s])), 2e-6)
            << graph.states()[s].name << ", " << plan;
    }
}

INSTANTIATE_TEST_SUITE_P(Networks, CpuKernels, testing::ValuesIn(networks()),
                         [](const auto& network) { return std::string(network.param.name); });

}  // namespace
}  // namespace regatta
