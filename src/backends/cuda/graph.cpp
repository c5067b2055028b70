#include "backends/cuda/graph.h"

#include <cuda_runtime.h>

#include <utility>

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

void upload(Stream stream, std::byte* target, const void* source, std::size_t bytes) {
  check(cudaMemcpyAsync(target, source, bytes, cudaMemcpyHostToDevice, stream));
}

}  // namespace regatta::cuda
