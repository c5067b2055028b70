// Numbers on the GPU, for tests.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <vector>

#include "backends/cuda/check.h"
#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/memory.h"

#define SKIP_WITHOUT_GPU() \
  if (!cuda::available()) GTEST_SKIP() << "this machine has no usable GPU"

namespace regatta {

template <class T>
struct OnDeviceOf {
  explicit OnDeviceOf(const std::vector<T>& values)
      : memory(values.size() * sizeof(T), "a test"), count(values.size()) {
    cuda::check(cudaMemcpy(memory.data(), values.data(), memory.bytes(), cudaMemcpyHostToDevice));
    // Copies go by the default stream, which others do not wait for.
    cuda::check(cudaDeviceSynchronize());
  }
  T* data() const { return reinterpret_cast<T*>(memory.data()); }
  std::vector<T> read() const {
    cuda::check(cudaDeviceSynchronize());
    std::vector<T> values(count);
    cuda::check(cudaMemcpy(values.data(), memory.data(), memory.bytes(), cudaMemcpyDeviceToHost));
    return values;
  }
  cuda::DeviceMemory memory;
  std::size_t count;
};
using OnDevice = OnDeviceOf<float>;

class TestStream {
 public:
  TestStream() { cuda::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~TestStream() { cudaStreamDestroy(stream_); }
  TestStream(const TestStream&) = delete;
  TestStream& operator=(const TestStream&) = delete;
  cudaStream_t get() const { return stream_; }
  void wait() const { cuda::check(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace regatta
