// One GPU of the plan: its stream, kernels and captured graphs. A build without CUDA has it too;
// there it only says so.
#pragma once

#include <memory>

#include "exec/submission.h"

namespace regatta {

class CudaRunner {
 public:
  virtual ~CudaRunner() = default;
  // On the CUDA worker's thread: replays the task's graph, capturing it first if it is new.
  // `pointers` are device addresses, in the order of the task's accesses.
  virtual void run(const TaskRun& run, const std::vector<std::byte*>& pointers) = 0;
  virtual std::size_t captures() const = 0;
  // Lets updates go on after a loss that was not finite. With nothing on its way.
  virtual void forget_not_finite() {}
};

// Throws InputError when this machine or this build has no usable GPU.
void require_cuda();

// On the CUDA worker's thread, with its device current.
std::unique_ptr<CudaRunner> make_cuda_runner(const Blueprint& blueprint, GroupId group,
                                             const ExecOptions& options);

}  // namespace regatta
