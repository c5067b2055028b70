// What StarPU's workers keep from task to task, and how each carries out one.
#pragma once

#include <memory>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "exec/copies.h"
#include "exec/cuda_runner.h"
#include "exec/device.h"
#include "exec/frame.h"
#include "exec/runtime.h"
#include "exec/submission.h"
#include "exec/worker_ids.h"

namespace regatta {

class Workers {
 public:
  // After StarPU has started. All arguments must outlive this.
  Workers(const Blueprint& blueprint, const ExecOptions& options, const Runtime& runtime,
          const WorkerIds& ids, const Copies& copies);

  // On the worker's thread. `buffers`: StarPU's, which tells where data are unless the task is at
  // gates.
  void run_on_cpu(const TaskRun& run, void* buffers[]);
  void run_on_gpu(const TaskRun& run, void* buffers[]);

  // Whether the group's GPU found a gradient that is not finite in an update that is done.
  bool saw_not_finite(GroupId group) const;
  // Lets updates on GPUs go on after that. With nothing on its way.
  void forget_not_finite();
  std::size_t graph_captures() const;
  std::size_t workspace_bytes() const;  // of CPU workers' kernels, so far

 private:
  // Made on the worker's own thread.
  struct Worker {
    std::unique_ptr<Device> cpu;
    std::unique_ptr<Frame> frame;
    std::unique_ptr<CudaRunner> cuda;
    double slowness = 1;
  };

  std::unique_ptr<Device> make_cpu_device();
  std::vector<const std::uint8_t*> mask_pointers() const;
  bool loads_for_gpu(const TaskRun& run) const;  // and somebody wants to know of it
  Worker& this_worker();
  CudaRunner& this_gpu();

  const Blueprint& blueprint_;
  const ExecOptions& options_;
  const Runtime& runtime_;
  const WorkerIds& ids_;
  const Copies& copies_;
  const std::unique_ptr<cpu::Backend> backend_;
  const std::vector<std::vector<std::uint8_t>> masks_;  // by bucket
  std::vector<Worker> workers_;                         // by StarPU's number
};

// Where StarPU has put the data of an access.
std::byte* data_of(void* buffer);

}  // namespace regatta
