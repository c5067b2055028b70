// Runs instructions on one CPU worker with oneDNN and our own vector loops.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "backends/cpu/kernel.h"
#include "backends/cpu/processor.h"
#include "base/precision.h"

namespace regatta::cpu {

// The channel block this processor's vectors want.
Layout preferred_layout();

// Why this processor does not compute in that precision; empty where it does.
std::string hindrance(Precision precision, bool bf16 = multiplies_bf16());

// What all workers of a group share: how each convolution's weights lie.
class Backend {
 public:
  // `samples`: the chunk size that formats are chosen for; other sizes work too. Throws InputError
  // where the processor does not compute in the precision.
  Backend(const Graph& graph, Layout layout, std::int64_t samples, Dtype sample_dtype,
          Normalisation normalisation, Precision precision = Precision::fp32);
  ~Backend();

  // Scratch memory that its workers have made so far.
  std::size_t workspace_bytes() const { return workspace_bytes_; }

 private:
  friend class Worker;
  Site site(const Node& node, std::int64_t n) const;
  // Whether any of the node's values is bf16, and whether its kernel reads and writes it as it is.
  bool touches_bf16(const Node& node) const;
  bool keeps_bf16(const Node& node) const;
  const ConvFormats* conv_formats(const Node& node);

  const Graph& graph_;
  std::vector<Layout> layouts_;
  std::vector<Dtype> dtypes_;  // of values, by node
  std::int64_t samples_;
  Dtype sample_dtype_;
  Normalisation normalisation_;
  std::atomic<std::size_t> workspace_bytes_ = 0;
  std::mutex mutex_;
  std::vector<std::unique_ptr<ConvFormats>> conv_formats_;  // by node, made on demand
};

// One worker's kernels and scratch memory. Not shared between threads.
class Worker {
 public:
  explicit Worker(Backend& backend);
  ~Worker();

  void run(const Instruction& step, const Operands& operands);
  // Lays a node's parameters out as run() expects them.
  void pack(const Node& node, std::span<const float* const> parameters, std::byte* packed,
            std::size_t room);
  // Scratch memory that run() makes for an instruction on so many samples, unless there is enough.
  // It depends on the threads of the team that asks: see AsWorker.
  std::size_t scratch_bytes(const Instruction& step, std::int64_t n);

 private:
  Kernel& kernel(const Node& node, std::int64_t n);
  std::byte* scratch(std::size_t bytes);

  struct Packers;
  Backend& backend_;
  std::vector<std::vector<std::pair<std::int64_t, std::unique_ptr<Kernel>>>> kernels_;  // by node
  std::unique_ptr<Packers> packers_;
  std::unique_ptr<std::byte, void (*)(void*)> scratch_;
  std::size_t scratch_bytes_ = 0;
};

// Makes this thread a worker with a team of so many threads (1: it works alone): oneDNN's kernels
// and our own loops use them. They start here and inherit this thread's CPUs. Denormals are rounded
// to zero on all of them: they cost tens of times more.
void prepare_worker_thread(int team = 1);

// While it lives, kernels that this thread makes are those of a worker with a team of so many
// threads; they are to be asked, not run: no thread is started.
class AsWorker {
 public:
  explicit AsWorker(int team);
  ~AsWorker();
  AsWorker(const AsWorker&) = delete;
  AsWorker& operator=(const AsWorker&) = delete;

 private:
  int threads_, team_;  // of this thread, before
};

}  // namespace regatta::cpu
