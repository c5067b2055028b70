// Captured CUDA graphs: a list of kernels replayed by one call.
#pragma once

#include <functional>

#include "backends/cuda/cuda_backend.h"

struct CUgraphExec_st;  // CUDA's own; declared here so that its headers are not needed

namespace regatta::cuda {

// What a stream was told to do, kept for replay. The addresses it was captured with must stay.
class CapturedGraph {
 public:
  CapturedGraph() = default;
  // Captures what `enqueue` puts on `stream`, on this thread alone; nothing runs yet.
  CapturedGraph(Stream stream, const std::function<void()>& enqueue);
  ~CapturedGraph();
  CapturedGraph(CapturedGraph&& other) noexcept;
  CapturedGraph& operator=(CapturedGraph&& other) noexcept;

  explicit operator bool() const { return executable_ != nullptr; }
  void launch(Stream stream) const;

 private:
  CUgraphExec_st* executable_ = nullptr;
};

// Between main memory, which must be pinned, and the device's; may be captured.
void enqueue_copy(Stream stream, void* to, const void* from, std::size_t bytes);

// Whether no value in device memory is infinite or not a number; waits for the stream.
bool all_finite(Stream stream, const void* values, Dtype dtype, std::size_t count);

}  // namespace regatta::cuda
