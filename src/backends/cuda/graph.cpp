#include "backends/cuda/graph.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "backends/cuda/check.h"

namespace regatta::cuda {

CapturedGraph::CapturedGraph(Stream stream, const std::function<void()>& enqueue) {
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  cudaGraph_t graph = nullptr;
  try {
    enqueue();
  } catch (...) {
    // A stream left capturing would refuse all further work.
    cudaStreamEndCapture(stream, &graph);
    if (graph) cudaGraphDestroy(graph);
    throw;
  }
  check(cudaStreamEndCapture(stream, &graph));
  const cudaError_t made = cudaGraphInstantiate(&executable_, graph, 0);
  cudaGraphDestroy(graph);
  check(made);
}

CapturedGraph::~CapturedGraph() {
  if (executable_) cudaGraphExecDestroy(executable_);
}

CapturedGraph::CapturedGraph(CapturedGraph&& other) noexcept
    : executable_(std::exchange(other.executable_, nullptr)) {}

CapturedGraph& CapturedGraph::operator=(CapturedGraph&& other) noexcept {
  std::swap(executable_, other.executable_);
  return *this;
}

void CapturedGraph::launch(Stream stream) const { check(cudaGraphLaunch(executable_, stream)); }

void enqueue_copy(Stream stream, void* to, const void* from, std::size_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
}

bool all_finite(Stream stream, const void* values, Dtype dtype, std::size_t count) {
  // A float or bf16 that is infinite or not a number has all bits of its exponent set.
  const auto none_of = [&]<class Bits>(Bits exponent) {
    std::vector<Bits> here(count);
    check(
        cudaMemcpyAsync(here.data(), values, count * sizeof(Bits), cudaMemcpyDeviceToHost, stream));
    check(cudaStreamSynchronize(stream));
    return std::ranges::none_of(here, [&](Bits b) { return (b & exponent) == exponent; });
  };
  return dtype == Dtype::bf16 ? none_of(std::uint16_t{0x7f80}) : none_of(std::uint32_t{0x7f800000});
}

}  // namespace regatta::cuda
