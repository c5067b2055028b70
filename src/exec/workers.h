// The state that StarPU's workers keep from task to task, and how a worker carries out a task.
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
  // Made after StarPU has started. All arguments must outlive this.
  Workers(const Blueprint& blueprint, const ExecOptions& options, const Runtime& runtime,
          const WorkerIds& ids, const Copies& copies);

  // Called on the worker's thread. `buffers` are StarPU's; tasks at gates know their data without.
  void run_on_cpu(const TaskRun& run, void* buffers[]);
  void run_on_gpu(const TaskRun& run, void* buffers[]);

  // Whether the group's GPU found a gradient that is not finite in an update that is done.
  bool saw_not_finite(GroupId group) const;
  // Removes the mark, so that updates on GPUs move parameters again. No task may be running.
  void forget_not_finite();
  std::size_t graph_captures() const;
  std::size_t workspace_bytes() const;  // of CPU workers' kernels, so far

 private:
  // The state of one worker, made on its own thread.
  struct Worker {
    std::unique_ptr<Device> cpu;
    std::unique_ptr<Frame> frame;
    std::unique_ptr<CudaRunner> cuda;
    double slowness = 1;
  };

  std::unique_ptr<Device> make_cpu_device();
  std::vector<const std::uint8_t*> mask_pointers() const;
  bool loads_for_gpu(const TaskRun& run) const;  // and StepInput::sent wants to be told
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
