// The CUDA kernels against the reference kernels: small networks in which each operator stands
// between parameters, every value and every gradient compared, in both layouts, whole and cut.
#ifdef REGATTA_HAVE_CUDA

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "backends/cuda/check.h"
#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/memory.h"
#include "backends/cuda/optimizer.h"
#include "backends/cuda_run.h"
#include "ops/builder.h"
#include "parity/formula.h"

namespace regatta {
namespace {

#define SKIP_WITHOUT_GPU() \
  if (!cuda::available()) GTEST_SKIP() << "this machine has no usable GPU"

struct Network {
  const char* name;
  Shape input;
  std::function<NodeId(NetBuilder&)> body;
  bool fused = true;
};

void PrintTo(const Network& network, std::ostream* out) { *out << network.name; }

Graph build(const Network& network) {
  NetBuilder net(network.name, network.input);
  const NodeId logits = network.body(net);
  Graph graph = std::move(net).finish(logits);
  return network.fused ? fuse(graph) : graph;
}

NodeId head(NetBuilder& net, NodeId x) { return net.dense("head", x, 7); }

std::vector<Network> networks() {
  return {
      {"dense_alone", {3, 5, 4}, [](NetBuilder& n) { return head(n, n.input()); }},
      {"dense_relu",
       {1, 6, 6},
       [](NetBuilder& n) { return head(n, n.relu(n.dense("a", n.input(), 33))); }},
      {"conv_of_one_plane",
       {1, 12, 12},
       [](NetBuilder& n) {
         NodeId x = n.conv("a", n.input(), {.channels = 4, .kernel = 3, .padding = 1});
         return head(n, n.max_pool(n.relu(x), {.kernel = 2}));
       }},
      {"conv_odd_counts",
       {3, 13, 11},
       [](NetBuilder& n) {
         NodeId x = n.conv("a", n.input(), {.channels = 6, .kernel = 5, .stride = 2, .padding = 2});
         return head(n, n.relu(n.conv("b", n.relu(x), {.channels = 18, .kernel = 3})));
       }},
      {"conv_whole_vectors",
       {16, 7, 9},
       [](NetBuilder& n) {
         NodeId x = n.conv("a", n.input(), {.channels = 32, .kernel = 1, .bias = false});
         x = n.conv("b", x, {.channels = 16, .kernel = 3, .stride = 2, .padding = 1});
         return head(n, n.conv("c", x, {.channels = 24, .kernel = 1, .bias = false}));
       }},
      {"overlapping_pool",
       {3, 13, 12},
       [](NetBuilder& n) {
         NodeId x = n.conv("a", n.input(), {.channels = 17, .kernel = 3, .padding = 1});
         return head(n, n.max_pool(x, {.kernel = 3, .stride = 2, .padding = 1}));
       }},
      {"overlapping_pool_of_vectors",
       {3, 14, 15},
       [](NetBuilder& n) {
         NodeId x = n.conv("a", n.input(), {.channels = 16, .kernel = 3, .padding = 1});
         return head(n, n.max_pool(x, {.kernel = 3, .stride = 2, .padding = 1}));
       }},
      {"pool_beside_pool",  // two users, so that one of the gradients is added
       {3, 9, 9},
       [](NetBuilder& n) {
         NodeId x = n.conv("a", n.input(), {.channels = 8, .kernel = 3, .padding = 1});
         NodeId y = n.max_pool(x, {.kernel = 3, .stride = 1, .padding = 1});
         NodeId z = n.max_pool(x, {.kernel = 1, .stride = 1});
         return head(n, n.global_average_pool(n.add(y, n.add(z, x))));
       }},
      {"averages_and_vectors_added",
       {3, 7, 5},
       [](NetBuilder& n) {
         NodeId x = n.conv("a", n.input(), {.channels = 12, .kernel = 2});
         NodeId y = n.global_average_pool(x);
         NodeId z = n.dense("b", x, 12);
         return head(n, n.relu(n.add(y, n.add(n.relu(y), z))));
       },
       false},
      {"norm",
       {3, 8, 8},
       [](NetBuilder& n) {
         NodeId x = n.conv("a", n.input(), {.channels = 12, .kernel = 3, .bias = false});
         return head(n, n.batch_norm("b", x));
       }},
      {"norm_of_odd_counts",
       {3, 8, 8},
       [](NetBuilder& n) {
         NodeId x = n.conv("a", n.input(), {.channels = 37, .kernel = 3, .bias = false});
         return head(n, n.relu(n.batch_norm("b", x)));
       }},
      {"norm_relu",
       {3, 20, 20},
       [](NetBuilder& n) {
         NodeId x = n.conv("a", n.input(), {.channels = 64, .kernel = 3, .bias = false});
         x = n.relu(n.batch_norm("b", x));
         return head(n, n.conv("c", x, {.channels = 8, .kernel = 3, .stride = 2}));
       }},
      {"norm_of_vectors",
       {1, 4, 4},
       [](NetBuilder& n) {
         return head(n, n.relu(n.batch_norm("b", n.dense("a", n.input(), 24))));
       }},
      {"residual_block",  // the convolution's gradient is added to the residual's
       {3, 8, 8},
       [](NetBuilder& n) {
         NodeId x = n.relu(n.conv("stem", n.input(), {.channels = 16, .kernel = 3, .padding = 1}));
         NodeId y = n.conv("a", x, {.channels = 16, .kernel = 3, .padding = 1, .bias = false});
         y = n.batch_norm("b", y);
         return head(n, n.relu(n.add(y, x)));
       }},
      {"residual_of_odd_counts",
       {3, 8, 8},
       [](NetBuilder& n) {
         NodeId x = n.relu(n.conv("stem", n.input(), {.channels = 10, .kernel = 3, .padding = 1}));
         NodeId y = n.conv("a", x, {.channels = 10, .kernel = 3, .padding = 1, .bias = false});
         y = n.batch_norm("b", y);
         return head(n, n.relu(n.add(y, x)));
       }},
      {"residual_downsample",
       {3, 9, 9},
       [](NetBuilder& n) {
         NodeId x = n.relu(n.conv("stem", n.input(), {.channels = 8, .kernel = 3, .padding = 1}));
         NodeId z = n.batch_norm(
             "d", n.conv("down", x, {.channels = 24, .kernel = 1, .stride = 2, .bias = false}));
         NodeId y = n.batch_norm(
             "b", n.conv("a", x,
                         {.channels = 24, .kernel = 3, .stride = 2, .padding = 1, .bias = false}));
         return head(n, n.relu(n.add(y, z)));
       }},
      {"norm_beside_norm",  // both norms read one value: one writes its gradient, one adds
       {3, 8, 8},
       [](NetBuilder& n) {
         NodeId x = n.conv("stem", n.input(), {.channels = 8, .kernel = 3});
         NodeId y = n.batch_norm("a", x);
         NodeId z = n.batch_norm("b", x);
         return head(n, n.relu(n.add(y, n.relu(n.add(z, x)))));
       }},
      {"nothing_fused",
       {3, 8, 8},
       [](NetBuilder& n) {
         NodeId x = n.relu(n.conv("stem", n.input(), {.channels = 8, .kernel = 3, .padding = 1}));
         NodeId y = n.batch_norm("b", n.conv("a", x, {.channels = 8, .kernel = 1}));
         return head(n, n.relu(n.dense("c", n.relu(n.add(y, x)), 15)));
       },
       false},
  };
}

// |a - b| / |b|; infinite where a has a NaN, so that no comparison lets it pass.
double distance(const std::vector<float>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    difference += std::pow(double(a[i]) - b[i], 2);
    norm += b[i] * b[i];
  }
  const double found = std::sqrt(difference / (norm > 0 ? norm : 1));
  return std::isnan(found) ? HUGE_VAL : found;
}

double norm(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

struct Tolerance {
  double values, gradients;
};

void expect_like_reference(const Graph& graph, const CudaRunOptions& options, Tolerance within) {
  std::int64_t n = 0;
  for (const std::int64_t chunk : options.chunks) n += chunk;
  const ReferenceInput<double> exact = make_input<double>(graph, n);
  const ReferenceResult<double> truth = reference_run(graph, exact);
  const ReferenceResult<double> evaluated = reference_run(graph, exact, Pass::evaluate);
  const CudaRun run = run_on_gpu(graph, make_input<float>(graph, n), options);

  EXPECT_LT(distance(run.logits, evaluated.values[graph.logits().value]), within.values)
      << "logits in evaluation";
  for (const Node& node : graph.nodes()) {
    const std::size_t id = node.id.value;
    EXPECT_LT(distance(run.values[id], truth.values[id]), within.values)
        << "value of " << node.name;
    if (run.value_gradients[id].empty()) continue;
    EXPECT_LT(distance(run.value_gradients[id], truth.value_gradients[id]), within.gradients)
        << "gradient of " << node.name;
  }
  // A bias before a batch norm has no gradient but rounding: the largest tensor sets the scale.
  double largest = 0;
  for (const auto& gradient : truth.parameter_gradients)
    largest = std::max(largest, norm(gradient));
  for (std::size_t p = 0; p < graph.parameters().size(); ++p) {
    const std::vector<double>& expected = truth.parameter_gradients[p];
    const double scale = norm(expected) > 0 ? norm(expected) : 1;
    EXPECT_LT(distance(run.parameter_gradients[p], expected) * scale,
              within.gradients * std::max(norm(expected), 0.05 * largest))
        << "gradient of " << graph.parameters()[p].name;
  }
  for (std::size_t s = 0; s < graph.states().size(); ++s)
    EXPECT_LT(distance(run.states[s], truth.states[s]), within.values) << graph.states()[s].name;
}

class CudaKernels : public testing::TestWithParam<Network> {};

TEST_P(CudaKernels, ComputeInFp32WhatTheReferenceComputes) {
  SKIP_WITHOUT_GPU();
  const Graph graph = build(GetParam());
  for (const Layout layout : {Layout::nhwc, Layout::nchw})
    for (const std::vector<std::int64_t>& chunks :
         {std::vector<std::int64_t>{9}, {4, 1, 0, 4}, {0, 8, 1}}) {
      SCOPED_TRACE(std::string(layout_name(layout)) + ", " + std::to_string(chunks.size()) +
                   " chunks");
      expect_like_reference(graph, {layout, Precision::fp32, chunks}, {1e-5, 5e-5});
    }
}

TEST_P(CudaKernels, ComputeOneSample) {
  SKIP_WITHOUT_GPU();
  const Graph graph = build(GetParam());
  // A lone vector has no variance to be divided by: its gradients are rounding alone.
  if (std::string(GetParam().name) == "norm_of_vectors") return;
  for (const Layout layout : {Layout::nhwc, Layout::nchw}) {
    SCOPED_TRACE(layout_name(layout));
    expect_like_reference(graph, {layout, Precision::fp32, {1}}, {1e-5, 5e-5});
  }
}

// Rounding values to 8 bits moves some across a relu's edge or past a pool's winner, which moves
// whole gradients; errors that are bugs are larger still.
TEST_P(CudaKernels, ComputeInBf16NearlyWhatTheReferenceComputes) {
  SKIP_WITHOUT_GPU();
  const Graph graph = build(GetParam());
  for (const Layout layout : {Layout::nhwc, Layout::nchw})
    for (const std::vector<std::int64_t>& chunks : {std::vector<std::int64_t>{9}, {4, 1, 0, 4}}) {
      SCOPED_TRACE(std::string(layout_name(layout)) + ", " + std::to_string(chunks.size()) +
                   " chunks");
      expect_like_reference(graph, {layout, Precision::bf16, chunks}, {0.03, 0.3});
    }
}

TEST_P(CudaKernels, ComputeInTf32NearlyWhatTheReferenceComputes) {
  SKIP_WITHOUT_GPU();
  expect_like_reference(build(GetParam()), {Layout::nhwc, Precision::tf32, {9}}, {4e-3, 3e-2});
}

TEST_P(CudaKernels, RepeatThemselvesBitForBit) {
  SKIP_WITHOUT_GPU();
  const Graph graph = build(GetParam());
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    CudaRunOptions options{Layout::nhwc, precision, {5, 4}};
    const ReferenceInput<float> input = make_input<float>(graph, 9);
    const CudaRun once = run_on_gpu(graph, input, options);
    const CudaRun again = run_on_gpu(graph, input, options);
    EXPECT_EQ(once.values, again.values);
    EXPECT_EQ(once.parameter_gradients, again.parameter_gradients);
    options.captured = true;
    const CudaRun replayed = run_on_gpu(graph, input, options);
    EXPECT_EQ(once.values, replayed.values);
    EXPECT_EQ(once.parameter_gradients, replayed.parameter_gradients);
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, CudaKernels, testing::ValuesIn(networks()),
                         [](const auto& network) { return std::string(network.param.name); });

std::vector<float> ramp(std::size_t count, float step) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = step * static_cast<float>(i % 101) - 1;
  return values;
}

struct OnDevice {
  explicit OnDevice(const std::vector<float>& values)
      : memory(values.size() * sizeof(float), "a test"), count(values.size()) {
    cuda::check(cudaMemcpy(memory.data(), values.data(), memory.bytes(), cudaMemcpyHostToDevice));
  }
  float* data() const { return reinterpret_cast<float*>(memory.data()); }
  std::vector<float> read() const {
    std::vector<float> values(count);
    cuda::check(cudaMemcpy(values.data(), memory.data(), memory.bytes(), cudaMemcpyDeviceToHost));
    return values;
  }
  cuda::DeviceMemory memory;
  std::size_t count;
};

TEST(CudaOptimizer, AddsSlotsInTheirOrder) {
  SKIP_WITHOUT_GPU();
  constexpr std::size_t count = 4099, slots = 70;  // odd, and more slots than one launch takes
  std::vector<float> expected = ramp(count, 0.1f);
  const OnDevice sum(expected);
  std::vector<OnDevice> others;
  std::vector<const float*> pointers;
  for (std::size_t s = 0; s < slots; ++s) {
    const std::vector<float> values = ramp(count, 0.01f * static_cast<float>(s + 1));
    for (std::size_t i = 0; i < count; ++i) expected[i] += values[i];
    others.emplace_back(values);
    pointers.push_back(others.back().data());
  }
  cuda::reduce_slots(nullptr, sum.data(), pointers, count);
  EXPECT_EQ(sum.read(), expected);
}

TEST(CudaOptimizer, TakesPyTorchsStep) {
  SKIP_WITHOUT_GPU();
  constexpr std::size_t count = 1027;
  Tensors<double> parameters(1), gradients(1), velocities(1);
  const std::vector<float> p = ramp(count, 0.3f), g = ramp(count, 0.07f), v = ramp(count, 0.02f);
  parameters[0].assign(p.begin(), p.end());
  gradients[0].assign(g.begin(), g.end());
  velocities[0].assign(v.begin(), v.end());
  ReferenceSgd{0.1, 0.9, 1e-4}.step(parameters, gradients, velocities);
  const OnDevice hyper({0.1f, 0.9f, 1e-4f}), gradient(g), velocity(v), parameter(p);
  cuda::sgd_step(nullptr, hyper.data(), gradient.data(), velocity.data(), parameter.data(), count);
  EXPECT_LT(distance(parameter.read(), parameters[0]), 1e-6);
  EXPECT_LT(distance(velocity.read(), velocities[0]), 1e-6);
}

TEST(CudaInput, NormalisesStoredBytes) {
  SKIP_WITHOUT_GPU();
  NetBuilder net("bytes", {3, 4, 5});
  const Graph graph = std::move(net).finish(net.dense("head", net.input(), 2));
  constexpr std::size_t n = 3, values = n * 3 * 20;
  std::vector<std::uint8_t> stored(values);
  for (std::size_t i = 0; i < values; ++i) stored[i] = static_cast<std::uint8_t>(7 * i);
  const Normalisation by{1.0f / 255, {0.4f, 0.5f, 0.6f}, {0.2f, 0.25f, 0.3f}};
  const cuda::DeviceMemory samples(values, "a test");
  cuda::check(cudaMemcpy(samples.data(), stored.data(), values, cudaMemcpyHostToDevice));
  for (const Layout layout : {Layout::nhwc, Layout::nchw}) {
    const cuda::Backend backend(graph, {layout, Precision::fp32, Dtype::u8, by});
    cuda::Worker worker(backend, nullptr);
    const OnDevice output(std::vector<float>(values, -1.0f));
    Operands o;
    o.n = n;
    o.samples = samples.data();
    o.output = output.data();
    worker.run({graph.input(), Work::forward}, o);
    const std::vector<float> found = output.read();
    for (std::size_t i = 0; i < values; ++i) {
      const std::size_t sample = i / 60, channel = i / 20 % 3, pixel = i % 20;
      const float expected =
          (static_cast<float>(stored[i]) / 255 - by.mean[channel]) / by.deviation[channel];
      const std::size_t at = layout == Layout::nhwc ? (sample * 20 + pixel) * 3 + channel : i;
      ASSERT_NEAR(found[at], expected, 1e-5) << layout_name(layout) << ", value " << i;
    }
  }
}

TEST(CudaBackend, RefusesBlockedLayouts) {
  NetBuilder net("tiny", {3, 4, 5});
  const Graph graph = std::move(net).finish(net.dense("head", net.input(), 2));
  EXPECT_THROW(cuda::Backend(graph, {.layout = Layout::blocked16}), InputError);
}

}  // namespace
}  // namespace regatta

#endif  // REGATTA_HAVE_CUDA
