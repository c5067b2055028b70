// One operator of a graph on the GPU, with all its operands, timed.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "backends/cuda/check.h"
#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/memory.h"
#include "graph/op.h"
#include "tasks/memory.h"

namespace regatta::bench {

using cuda::check;
using cuda::DeviceMemory;

// Seconds of one call, once everything is warm.
inline double seconds(cudaStream_t stream, const std::function<void()>& enqueue) {
  constexpr int runs = 20;
  cudaEvent_t start = nullptr, stop = nullptr;
  check(cudaEventCreate(&start));
  check(cudaEventCreate(&stop));
  for (int i = 0; i < 3; ++i) enqueue();
  check(cudaEventRecord(start, stream));
  for (int i = 0; i < runs; ++i) enqueue();
  check(cudaEventRecord(stop, stream));
  check(cudaEventSynchronize(stop));
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, start, stop));
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  return milliseconds / 1e3 / runs;
}

// Device memory full of small numbers: zeros would flatter the clocks.
inline DeviceMemory filled(std::size_t bytes) {
  static const DeviceMemory pattern = [] {
    std::vector<std::uint16_t> values(std::size_t{1} << 20);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<std::uint16_t>(0x3c00 + (i * 2654435761u >> 8) % 0x400 +
                                             ((i * 40503u >> 4) % 2) * 0x8000);
    DeviceMemory made(values.size() * 2, "the benchmark");
    check(cudaMemcpy(made.data(), values.data(), made.bytes(), cudaMemcpyHostToDevice));
    return made;
  }();
  DeviceMemory memory(bytes, "the benchmark");
  for (std::size_t at = 0; at < bytes; at += pattern.bytes())
    check(cudaMemcpy(memory.data() + at, pattern.data(), std::min(pattern.bytes(), bytes - at),
                     cudaMemcpyDeviceToDevice));
  check(cudaDeviceSynchronize());
  return memory;
}

inline float* floats(const DeviceMemory& memory) { return reinterpret_cast<float*>(memory.data()); }

// One operator of a graph with all its operands.
class OperatorBench {
 public:
  OperatorBench(const Graph& graph, NodeId node, std::int64_t n)
      : graph_(graph),
        node_(graph.node(node)),
        backend_(graph, {.precision = Precision::bf16, .normalisation = {1, {0}, {1}}}),
        worker_(backend_, nullptr) {
    const std::vector<ValueForm> forms = value_forms(graph, Layout::nhwc, Precision::bf16);
    const auto bytes = [&](NodeId id) { return forms[id.value].bytes(n); };
    const auto keep = [&](std::size_t size) {
      kept_.push_back(filled(size));
      return floats(kept_.back());
    };
    operands_.n = n;
    for (std::size_t i = 0; i < node_.inputs.size(); ++i) {
      operands_.inputs[i] = keep(bytes(node_.inputs[i]));
      operands_.input_gradients[i] = keep(bytes(node_.inputs[i]));
      operands_.gradient_modes[i] = GradientFlow(graph).mode(node, i);
    }
    operands_.output = keep(bytes(node));
    operands_.output_gradient = keep(bytes(node));
    for (std::size_t i = 0; i < node_.parameters.size(); ++i) {
      const auto count =
          static_cast<std::size_t>(graph.parameter(node_.parameters[i]).shape.elements());
      operands_.parameters[i] = keep(count * 4);
      operands_.parameter_gradients[i] = keep(count * 4);
    }
    operands_.packed = reinterpret_cast<const std::byte*>(
        keep(cuda::packed_bytes(graph, node_, Layout::nhwc, Precision::bf16)));
    const std::size_t row = static_cast<std::size_t>(node_.shape.channels() + 15);
    operands_.statistics = keep(row * 4 * 4);
    for (float*& state : operands_.states) state = keep(row * 4);
    if (node_.op->stash_bytes)
      operands_.stash = reinterpret_cast<std::byte*>(keep(
          static_cast<std::size_t>(n * node_.op->stash_bytes(node_, forms[node.value].elements))));
    // Stored samples and labels, both nothing but zeros.
    zeros_ = DeviceMemory(
        static_cast<std::size_t>(
            n * std::max<std::int64_t>(12, graph.node(graph.input()).shape.elements())),
        "the benchmark");
    check(cudaMemset(zeros_.data(), 0, zeros_.bytes()));
    operands_.samples = zeros_.data();
    operands_.targets = reinterpret_cast<const Target*>(zeros_.data());
    operands_.loss_scale = 1.0f / static_cast<float>(n);
    worker_.prepare(node_, n);
  }

  double time(Work work) {
    return seconds(nullptr, [&] { worker_.run({node_.id, work}, operands_); });
  }
  double values() const { return static_cast<double>(operands_.n * node_.shape.elements()); }
  double flops() const {
    return node_.op->cost(node_, input_shapes(graph_, node_)).forward_flops *
           static_cast<double>(operands_.n);
  }
  std::size_t workspace_bytes() const { return worker_.workspace_bytes(); }

 private:
  const Graph& graph_;
  const Node& node_;
  cuda::Backend backend_;
  cuda::Worker worker_;
  std::vector<DeviceMemory> kept_;
  DeviceMemory zeros_;
  Operands operands_;
};

}  // namespace regatta::bench
