// The CPU kernels against the reference kernels: small networks in which each operator stands
// between parameters, so that its forward shows in the loss and its backward in their gradients.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "parity/formula.h"
#include "support/bf16_here.h"
#include "support/executor_run.h"
#include "support/small_networks.h"

namespace regatta {
namespace {

// A first convolution of few channels, and what follows it in planes.
std::vector<SmallNetwork> planar_networks() {
  return {
      {"thin_conv",  // a last column that no window of the pooling covers
       {1, 21, 19},
       [](NetBuilder& n) {
         const NodeId x = n.conv("a", n.input(), {.channels = 4, .kernel = 3});
         return head(n, n.max_pool(n.relu(x), {.kernel = 2}));
       }},
      {"thin_conv_padded_relu",
       {3, 18, 17},
       [](NetBuilder& n) {
         return head(n, n.relu(n.conv("a", n.input(), {.channels = 7, .kernel = 5, .padding = 2})));
       }},
      {"thin_conv_uneven",  // wider than two vectors
       {4, 9, 50},
       [](NetBuilder& n) {
         const NodeId x =
             n.conv("a", n.input(),
                    {.channels = 8, .kernel = {2, 3}, .padding = {0, 2, 1, 0}, .bias = false});
         return head(n, n.relu(n.max_pool(x, {.kernel = 2})));
       }},
      {"thin_conv_read_twice",  // the pooling's gradient or the other's is added
       {2, 16, 34},
       [](NetBuilder& n) {
         const NodeId x = n.conv("a", n.input(), {.channels = 5, .kernel = 3});
         const NodeId y = n.add(n.dense("b", n.max_pool(x, {.kernel = 2}), 9), n.dense("c", x, 9));
         return head(n, n.add(y, n.dense("d", n.max_pool(n.relu(x), {.kernel = 2}), 9)));
       }},
      {"two_thin_convs",
       {1, 18, 18},
       [](NetBuilder& n) {
         const NodeId x = n.relu(n.conv("a", n.input(), {.channels = 1, .kernel = 3}));
         const NodeId y = n.conv("b", n.input(), {.channels = 3, .kernel = {1, 3}});
         return head(n, n.add(n.dense("c", x, 9), n.dense("d", y, 9)));
       }},
  };
}

// What the CPU's padded channel blocks make worth a look besides.
std::vector<SmallNetwork> networks() {
  std::vector<SmallNetwork> all = small_networks();
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
      {"many_pixels",  // which Winograd's algorithm computes, and adds one's gradient to another's
       {3, 13, 11},
       [](NetBuilder& n) {
         const NodeId x =
             n.relu(n.conv("a", n.input(), {.channels = 33, .kernel = 3, .padding = 1}));
         NodeId y = n.relu(n.conv("b", x, {.channels = 40, .kernel = 3, .padding = 1}));
         y = n.conv("c", y, {.channels = 33, .kernel = 3, .padding = 1, .bias = false});
         return head(n, n.global_average_pool(n.conv("d", n.add(x, y), {33, 3})));
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
  const std::vector<SmallNetwork> planar = planar_networks();
  all.insert(all.end(), planar.begin(), planar.end());
  return all;
}

struct Cut {
  std::vector<std::int64_t> chunks;  // of 9 samples; one number: so many equal ones
  const char* segments;
};

void expect_what_the_reference_computes(const SmallNetwork& network, const std::vector<Cut>& cuts) {
  const Graph graph = build(network);
  const ReferenceInput<double> exact = make_input<double>(graph, 9);
  const ReferenceResult<double> truth = reference_run(graph, exact);
  const ReferenceResult<double> evaluated = reference_run(graph, exact, Pass::evaluate);
  const ReferenceInput<float> input = make_input<float>(graph, 9);
  const auto as_float = [](const std::vector<double>& v) {
    return std::vector<float>(v.begin(), v.end());
  };
  for (const auto& [chunks, segments] : cuts) {
    PlanOptions options;
    options.workers = 2;
    options.chunks = chunks;
    options.segments = segments;
    const ExecutedRun run = execute(graph, plan_for(graph, 9, options), input, {}, 1);
    const std::string plan = std::to_string(chunks.size()) + " chunks, segments " + segments;
    EXPECT_NEAR(run.losses[0], truth.loss, 2e-6 * std::max(1.0, truth.loss)) << plan;
    EXPECT_LT(relative_distance(run.logits, as_float(evaluated.values[graph.logits().value])), 2e-6)
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

double norm_of(const std::vector<float>& values) {
  return relative_distance(values, std::vector<float>(values.size()));
}

// Rounding values to 8 bits moves some across a relu's edge or past a pool's winner, which moves
// whole gradients; errors that are bugs are larger still.
void expect_nearly_what_the_reference_computes(const SmallNetwork& network,
                                               const std::vector<Cut>& cuts) {
  constexpr double of_values = 0.03, of_gradients = 0.3;
  const Graph graph = build(network);
  const ReferenceInput<float> input = make_input<float>(graph, 9);
  const ReferenceResult<float> truth = reference_run(graph, input);
  const ReferenceResult<float> evaluated = reference_run(graph, input, Pass::evaluate);
  // A bias before a batch norm has no gradient but rounding: the largest tensor sets the scale.
  double largest = 0;
  for (const auto& gradient : truth.parameter_gradients)
    largest = std::max(largest, norm_of(gradient));
  for (const auto& [chunks, segments] : cuts) {
    PlanOptions options;
    options.workers = 2;
    options.chunks = chunks;
    options.segments = segments;
    const ExecutedRun run =
        execute(graph, plan_for(graph, 9, options), input, {}, 1, Precision::bf16);
    const std::string plan = std::to_string(chunks.size()) + " chunks, segments " + segments;
    EXPECT_NEAR(run.losses[0], truth.loss, of_values * std::max(1.0, truth.loss)) << plan;
    EXPECT_LT(relative_distance(run.logits, evaluated.values[graph.logits().value]), of_values)
        << plan;
    for (std::size_t p = 0; p < run.gradients.size(); ++p) {
      const std::vector<float>& expected = truth.parameter_gradients[p];
      const double scale = norm_of(expected) > 0 ? norm_of(expected) : 1;
      EXPECT_LT(relative_distance(run.gradients[p], expected) * scale,
                of_gradients * std::max(norm_of(expected), 0.05 * largest))
          << graph.parameters()[p].name << ", " << plan;
    }
    for (std::size_t s = 0; s < run.states.size(); ++s)
      EXPECT_LT(relative_distance(run.states[s], truth.states[s]), of_values)
          << graph.states()[s].name << ", " << plan;
  }
}

class CpuKernels : public testing::TestWithParam<SmallNetwork> {};
class MoreCpuKernels : public testing::TestWithParam<SmallNetwork> {};

TEST_P(CpuKernels, ComputeWhatTheReferenceComputes) {
  const std::vector<std::int64_t> whole{1}, uneven{4, 1, 2, 2};
  expect_what_the_reference_computes(GetParam(), {{whole, "step"},
                                                  {whole, "op"},
                                                  {whole, "2"},
                                                  {uneven, "step"},
                                                  {uneven, "op"},
                                                  {uneven, "2"}});
}

TEST_P(MoreCpuKernels, ComputeWhatTheReferenceComputes) {
  expect_what_the_reference_computes(GetParam(), {{{1}, "step"}, {{4, 1, 2, 2}, "op"}});
}

TEST_P(CpuKernels, ComputeInBf16NearlyWhatTheReferenceComputes) {
  SKIP_WITHOUT_BF16();
  expect_nearly_what_the_reference_computes(GetParam(),
                                            {{{1}, "step"}, {{4, 1, 2, 2}, "op"}, {{1}, "op"}});
}

TEST_P(MoreCpuKernels, ComputeInBf16NearlyWhatTheReferenceComputes) {
  SKIP_WITHOUT_BF16();
  expect_nearly_what_the_reference_computes(GetParam(), {{{1}, "step"}, {{4, 1, 2, 2}, "op"}});
}

const auto name_of = [](const auto& network) { return std::string(network.param.name); };
INSTANTIATE_TEST_SUITE_P(Networks, CpuKernels, testing::ValuesIn(networks()), name_of);
INSTANTIATE_TEST_SUITE_P(Networks, MoreCpuKernels, testing::ValuesIn(more_small_networks()),
                         name_of);

std::vector<Precision> precisions_here() {
  std::vector<Precision> found{Precision::fp32};
  if (cpu::hindrance(Precision::bf16).empty()) found.push_back(Precision::bf16);
  return found;
}

// How a step of three images ends, one pixel of which is not a number.
std::string end_with_nan(const SmallNetwork& network, Precision precision) {
  const Graph graph = build(network);
  ReferenceInput<float> input = make_input<float>(graph, 3);
  input.images[input.images.size() / 2] = std::numeric_limits<float>::quiet_NaN();
  PlanOptions options;
  options.chunks = {1};
  // The error must name the loss: a gradient is noticed later, and on other grounds.
  try {
    execute(graph, plan_for(graph, 3, options), input, {}, 1, precision);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

// A NaN that a kernel swallowed would let a network that has diverged go on unnoticed.
TEST(EveryCpuKernel, ShowsNotANumberInTheLoss) {
  using Layer = std::function<NodeId(NetBuilder&, NodeId)>;
  const std::vector<std::pair<const char*, Layer>> layers{
      {"conv and relu", [](NetBuilder& n, NodeId x) { return n.relu(n.conv("b", x, {20})); }},
      {"depthwise and relu",
       [](NetBuilder& n, NodeId x) {
         return n.relu(n.conv("b", x, {.channels = 16, .kernel = 3, .groups = 16}));
       }},
      {"dense and relu", [](NetBuilder& n, NodeId x) { return n.relu(n.dense("b", x, 20)); }},
      {"max_pool", [](NetBuilder& n, NodeId x) { return n.max_pool(x, {.kernel = 3}); }},
      {"average_pool", [](NetBuilder& n, NodeId x) { return n.average_pool(x, {.kernel = 3}); }},
      {"batch_norm and relu", [](NetBuilder& n, NodeId x) { return n.relu(n.batch_norm("b", x)); }},
      {"activations",
       [](NetBuilder& n, NodeId x) {
         return n.relu6(n.leaky_relu(n.sigmoid(n.tanh(n.gelu(n.gelu(x), true)))));
       }},
      {"norms",
       [](NetBuilder& n, NodeId x) {
         return n.layer_norm("b", n.local_response_norm(n.dropout(x), {}));
       }},
  };
  for (const auto& [name, layer] : layers) {
    const SmallNetwork network{name, {3, 9, 9}, [&](NetBuilder& n) {
                                 return head(n, layer(n, n.conv("a", n.input(), {16})));
                               }};
    for (const Precision precision : precisions_here())
      EXPECT_EQ(end_with_nan(network, precision), "the loss is no longer a number")
          << name << " in " << precision_name(precision);
  }
}

TEST(EveryCpuKernel, ShowsNotANumberOfManyPixelsInTheLoss) {
  const SmallNetwork network{
      "winograd", {3, 16, 16}, [](NetBuilder& n) {
        const NodeId x = n.conv("a", n.input(), {32});
        return head(n, n.relu(n.conv("b", x, {.channels = 32, .kernel = 3, .padding = 1})));
      }};
  for (const Precision precision : precisions_here())
    EXPECT_EQ(end_with_nan(network, precision), "the loss is no longer a number")
        << precision_name(precision);
}

TEST(EveryCpuKernel, ShowsNotANumberOfPlanesInTheLoss) {
  const SmallNetwork network{"planes", {3, 9, 9}, [](NetBuilder& n) {
                               const NodeId x =
                                   n.conv("a", n.input(),
                                          {.channels = 4, .kernel = {2, 3}, .padding = {0, 5}});
                               return head(n, n.relu(n.max_pool(x, {.kernel = 2})));
                             }};
  for (const Precision precision : precisions_here())
    EXPECT_EQ(end_with_nan(network, precision), "the loss is no longer a number")
        << precision_name(precision);
}

}  // namespace
}  // namespace regatta
