#include "backends/cuda/probe.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "backends/cuda/matmul.h"

namespace regatta::cuda {
namespace {

constexpr std::int64_t side = 8192;                     // of a matrix: enough for any GPU
constexpr std::size_t copied = std::size_t{256} << 20;  // over the bus
constexpr std::size_t moved = std::size_t{512} << 20;   // inside the GPU
constexpr std::size_t few = 4;                          // bytes that take no time but the call's

class OnDevice {
 public:
  explicit OnDevice(int device) {
    check(cudaGetDevice(&before_));
    check(cudaSetDevice(device));
  }
  ~OnDevice() { cudaSetDevice(before_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_ = 0;
};

class OwnStream {
 public:
  OwnStream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~OwnStream() { cudaStreamDestroy(stream_); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event() { check(cudaEventCreate(&event_)); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

class CublasHandle {
 public:
  CublasHandle() { check(cublasLtCreate(&handle_)); }
  ~CublasHandle() { cublasLtDestroy(handle_); }
  CublasHandle(const CublasHandle&) = delete;
  CublasHandle& operator=(const CublasHandle&) = delete;
  cublasLtHandle_t get() const { return handle_; }

 private:
  cublasLtHandle_t handle_ = nullptr;
};

class PinnedMemory {
 public:
  explicit PinnedMemory(std::size_t bytes) { check(cudaMallocHost(&data_, bytes)); }
  ~PinnedMemory() { cudaFreeHost(data_); }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

// Seconds of one call of `enqueue`: the least of some rounds, after one that warms up.
double seconds_of(cudaStream_t stream, int calls, const std::function<void()>& enqueue) {
  constexpr int rounds = 5;
  const Event begin, end;
  double least = 0;
  for (int round = 0; round <= rounds; ++round) {
    check(cudaEventRecord(begin.get(), stream));
    for (int i = 0; i < calls; ++i) enqueue();
    check(cudaEventRecord(end.get(), stream));
    check(cudaEventSynchronize(end.get()));
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()));
    const double seconds = double{milliseconds} * 1e-3 / calls;
    if (round > 0 && (least == 0 || seconds < least)) least = seconds;
  }
  return std::max(least, 1e-9);
}

double matmul_flops(const Tools& tools, Precision precision) {
  const Dtype dtype = precision == Precision::bf16 ? Dtype::bf16 : Dtype::f32;
  const std::size_t bytes = static_cast<std::size_t>(side * side) * dtype_bytes(dtype);
  std::array<DeviceMemory, 3> matrices;
  for (DeviceMemory& matrix : matrices) {
    matrix = DeviceMemory(bytes, "a matrix to measure with");
    check(cudaMemsetAsync(matrix.data(), 0, bytes, tools.stream));
  }
  const Matmul product(tools, {.rows = side,
                               .columns = side,
                               .inner = side,
                               .factors = dtype,
                               .result = dtype,
                               .precision = precision});
  const double seconds = seconds_of(tools.stream, 2, [&] {
    product.run(matrices[0].data(), matrices[1].data(), matrices[2].data(), false, tools.workspace);
  });
  return 2.0 * side * side * side / seconds;
}

}  // namespace

std::vector<DeviceInfo> devices() {
  std::vector<DeviceInfo> found;
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) count = 0;
  cudaGetLastError();  // a machine without a driver is no error
  for (int device = 0; device < count; ++device) {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, device));
    char bus[32] = "";
    check(cudaDeviceGetPCIBusId(bus, sizeof bus, device));
    found.push_back(
        {device, properties.name, bus, static_cast<std::int64_t>(properties.totalGlobalMem)});
  }
  return found;
}

DeviceSpeed measure(const DeviceInfo& device) {
  const OnDevice here(device.number);
  const OwnStream stream;
  const CublasHandle cublas;
  const DeviceMemory workspace(Matmul::workspace_bytes, "a matrix product");
  Tools tools;
  tools.stream = stream.get();
  tools.cublas = cublas.get();
  tools.workspace = workspace.data();
  DeviceSpeed speed;
  speed.fp32_flops = matmul_flops(tools, Precision::fp32);
  speed.tf32_flops = matmul_flops(tools, Precision::tf32);
  speed.bf16_flops = matmul_flops(tools, Precision::bf16);

  const DeviceMemory first(moved, "memory to measure"), second(moved, "memory to measure");
  const PinnedMemory host(copied);
  const auto copy = [&](void* to, const void* from, std::size_t bytes, int calls) {
    return seconds_of(stream.get(), calls, [&] {
      check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream.get()));
    });
  };
  speed.memory_bandwidth = 2.0 * moved / copy(second.data(), first.data(), moved, 4);
  speed.to_device = copied / copy(first.data(), host.data(), copied, 1);
  speed.from_device = copied / copy(host.data(), first.data(), copied, 1);
  speed.latency = copy(first.data(), host.data(), few, 1);
  return speed;
}

}  // namespace regatta::cuda
