// The CUDA kernels against the reference kernels: small networks in which each operator stands
// between parameters, every value and every gradient compared, in both layouts, whole and cut.
#ifdef REGATTA_HAVE_CUDA

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "backends/cuda/check.h"
#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/memory.h"
#include "backends/cuda_memory.h"
#include "backends/cuda_run.h"
#include "parity/formula.h"
#include "support/operator_networks.h"

namespace regatta {
namespace {

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
  ReferenceInput<double> exact = make_input<double>(graph, n);
  ReferenceInput<float> rounded = make_input<float>(graph, n);
  exact.step = rounded.step = 3;
  const ReferenceResult<double> truth = reference_run(graph, exact);
  const ReferenceResult<double> evaluated = reference_run(graph, exact, Pass::evaluate);
  const CudaRun run = run_on_gpu(graph, rounded, options);

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

class CudaKernels : public testing::TestWithParam<SmallNetwork> {};

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

const auto name_of_network = [](const auto& network) { return std::string(network.param.name); };
INSTANTIATE_TEST_SUITE_P(Networks, CudaKernels, testing::ValuesIn(small_networks()),
                         name_of_network);
INSTANTIATE_TEST_SUITE_P(Operators, CudaKernels, testing::ValuesIn(operator_networks()),
                         name_of_network);

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

// Three planes of bytes become pixels of eight bf16 channels, five of them zero.
TEST(CudaInput, PadsImagesThatOnlyConvolutionsRead) {
  SKIP_WITHOUT_GPU();
  NetBuilder net("bytes", {3, 4, 5});
  const Graph graph =
      std::move(net).finish(net.dense("head", net.conv("c", net.input(), {.channels = 2}), 2));
  constexpr std::size_t n = 3, values = n * 3 * 20, padded = n * 8 * 20;
  std::vector<std::uint8_t> stored(values);
  for (std::size_t i = 0; i < values; ++i) stored[i] = static_cast<std::uint8_t>(i % 128);
  const cuda::DeviceMemory samples(values, "a test"), output(2 * padded, "a test");
  cuda::check(cudaMemcpy(samples.data(), stored.data(), values, cudaMemcpyHostToDevice));
  cuda::check(cudaMemset(output.data(), 0xff, output.bytes()));
  const cuda::Backend backend(
      graph, {Layout::nhwc, Precision::bf16, Dtype::u8, {1, {0, 0, 0}, {1, 1, 1}}});
  cuda::Worker worker(backend, nullptr);
  Operands o;
  o.n = n;
  o.samples = samples.data();
  o.output = reinterpret_cast<float*>(output.data());
  worker.run({graph.input(), Work::forward}, o);
  std::vector<std::uint16_t> found(padded);
  cuda::check(cudaMemcpy(found.data(), output.data(), 2 * padded, cudaMemcpyDeviceToHost));
  for (std::size_t i = 0; i < padded; ++i) {
    const std::size_t sample = i / 160, pixel = i / 8 % 20, channel = i % 8;
    const float expected = channel < 3 ? stored[(sample * 3 + channel) * 20 + pixel] : 0.0f;
    ASSERT_EQ(std::bit_cast<float>(std::uint32_t{found[i]} << 16), expected) << "value " << i;
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
