// One GPU of the plan: its stream, kernels and captured graphs. A build without CUDA has it too;
// there it only says so.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backends/cuda/kernel_log.h"
#include "backends/cuda/memory.h"
#include "exec/submission.h"
#include "platform/limits.h"

namespace regatta {

class CudaRunner {
 public:
  virtual ~CudaRunner() = default;
  // On the CUDA worker's thread: replays the task's graph, capturing it first if it is new.
  // `pointers` are device addresses, in the order of the task's accesses. When the task has run,
  // `copies` bring main memory up to date with what it wrote.
  virtual void run(const TaskRun& run, const std::vector<std::byte*>& pointers,
                   std::span<const cuda::Copy> copies) = 0;
  virtual std::size_t captures() const = 0;
  // Whether an update that is done found a gradient that is infinite or not a number.
  virtual bool saw_not_finite() const = 0;
  // Lets updates go on after a loss or gradient that was not finite. With nothing on its way.
  virtual void forget_not_finite() = 0;
};

// What the GPU has and what is left of it. Throws InputError where there is none.
MemoryLimit gpu_memory_limit();

// Throws InputError when this machine or this build has no usable GPU.
void require_cuda();

// On the CUDA worker's thread, with its device current.
std::unique_ptr<CudaRunner> make_cuda_runner(const Blueprint& blueprint, GroupId group,
                                             const ExecOptions& options);

// On a StarPU CUDA worker's thread, enqueued on its stream: for StarPU's own reduction.
void enqueue_zero(float* values, std::size_t count) noexcept;
void enqueue_add(float* sum, const float* other, std::size_t count) noexcept;

// See cuda::open_kernel_log().
std::unique_ptr<cuda::KernelLog> open_kernel_log(std::string& why);

// Between main memory and a GPU's; done when they return.
void copy_on_device(int device, std::span<const cuda::Copy> copies);
void zero_on_device(int device, void* data, std::size_t bytes);  // memory that nobody uses yet

}  // namespace regatta
