#include "backends/cuda/memory.h"

#include "backends/cuda/check.h"

namespace regatta::cuda {

DeviceMemory::DeviceMemory(std::size_t bytes, const std::string& what) : bytes_(bytes) {
  if (bytes == 0) return;
  const cudaError_t status = cudaMalloc(reinterpret_cast<void**>(&data_), bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // the runtime would report it again at the next launch
    throw_out_of_memory(what, bytes);
  }
  check(status);
}

DeviceMemory::~DeviceMemory() { cudaFree(data_); }

DeviceMemory on_device(std::span<const std::uint8_t> bytes, const std::string& what) {
  DeviceMemory memory(bytes.size(), what);
  if (bytes.empty()) return memory;
  // Not the default stream: see below.
  check(cudaMemcpyAsync(memory.data(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice,
                        cudaStreamPerThread));
  check(cudaStreamSynchronize(cudaStreamPerThread));
  return memory;
}

namespace {

class OnDevice {
 public:
  explicit OnDevice(int device) {
    check(cudaGetDevice(&before_));
    if (before_ != device) check(cudaSetDevice(device));
  }
  ~OnDevice() { cudaSetDevice(before_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_ = 0;
};

}  // namespace

// On the thread's own stream, not on the default one, which may not be used while another thread
// captures.
void copy(int device, std::span<const Copy> copies) {
  const OnDevice current(device);
  for (const Copy& each : copies)
    check(cudaMemcpyAsync(each.to, each.from, each.bytes, cudaMemcpyDefault, cudaStreamPerThread));
  check(cudaStreamSynchronize(cudaStreamPerThread));
}

void zero(int device, void* data, std::size_t bytes) {
  const OnDevice current(device);
  check(cudaMemsetAsync(data, 0, bytes, cudaStreamPerThread));
  check(cudaStreamSynchronize(cudaStreamPerThread));
}

}  // namespace regatta::cuda
