// Runs instructions on one CUDA stream with cuDNN, cuBLASLt and our own kernels. Everything here
// but prepare() only enqueues, so a list of instructions can be captured into a CUDA graph. This
// header needs no CUDA header, so that any file may include it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/operands.h"
#include "base/dtype.h"
#include "base/precision.h"

struct CUstream_st;

namespace regatta::cuda {

using Stream = CUstream_st*;  // cudaStream_t

// A driver and a device are there.
bool available() noexcept;
std::string device_name();

struct MemoryInfo {
  std::size_t free = 0, total = 0;
};
MemoryInfo memory_info();

// Room for a node's weights as its kernels read them; 0 where they read the parameters themselves.
std::size_t packed_bytes(const Graph& graph, const Node& node, Layout layout, Precision precision);

struct Settings {
  Layout layout = Layout::nhwc;  // or nchw
  Precision precision = Precision::fp32;
  Dtype sample_dtype = Dtype::u8;
  Normalisation normalisation{};
};

// What all workers of a device share.
class Backend {
 public:
  Backend(const Graph& graph, Settings settings);

 private:
  friend class Worker;
  const Graph& graph_;
  Settings settings_;
  std::vector<Layout> layouts_;  // by node
  std::vector<Dtype> dtypes_;    // by node
  GradientFlow flow_;
};

// One node's parameters on their way into packed form. `packed` has packed_bytes() of room.
struct PackItem {
  const Node* node = nullptr;
  const float* weight = nullptr;
  std::byte* packed = nullptr;
};

// One stream's library handles, kernels and workspace. Not shared between threads. All pointers it
// is given are device pointers.
class Worker {
 public:
  Worker(const Backend& backend, Stream stream);
  ~Worker();

  // What dropout draws by, of all runs and replays from now on: Operands::step is not looked at, as
  // a captured graph could not follow it. Not part of a capture.
  void follow(std::uint64_t step);

  // On the device: not zero once a loss in training was infinite or not a number, or whoever takes
  // the steps has set it.
  int* mark() const;
  void forget_mark();

  // Chooses algorithms for `n` samples and makes room for them. Once every node is prepared for
  // every chunk size, run() allocates nothing. Captured graphs stay valid when more is prepared.
  void prepare(const Node& node, std::int64_t n, Pass pass = Pass::train);
  void run(const Instruction& step, const Operands& operands);

  // Lays parameters out as run() expects them: a bucket is one launch.
  void pack(std::span<const PackItem> items);
  void pack(const Node& node, std::span<const float* const> parameters, std::byte* packed,
            std::size_t room);

  std::size_t workspace_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::cuda
