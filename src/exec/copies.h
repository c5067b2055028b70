// Buffers of which main memory and a GPU have a copy each, for tasks at gates: a task that wrote
// one copy brings the other up to date before it ends.
#pragma once

#include <vector>

#include "backends/cuda/memory.h"
#include "exec/submission.h"

namespace regatta {

class Copies {
 public:
  // `gpu_device`: CUDA's number of the plan's GPU; -1: none.
  Copies(const Blueprint& blueprint, int gpu_device)
      : blueprint_(blueprint), gpu_device_(gpu_device) {}

  // The copies to be made of what a task of the GPU writes: from its memory to main memory.
  std::vector<cuda::Copy> to_host(const TaskRun& run) const { return copies_of(run, false); }
  // Copies what a CPU worker's task, or a message, has written from main memory to the GPU.
  void bring_to_gpu(const TaskRun& run) const;

 private:
  std::vector<cuda::Copy> copies_of(const TaskRun& run, bool to_gpu) const;

  const Blueprint& blueprint_;
  const int gpu_device_;
};

}  // namespace regatta
