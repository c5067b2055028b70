#include "exec/worker_ids.h"

#include <starpu.h>

#include "base/error.h"

namespace regatta {

WorkerIds::WorkerIds(const Plan& plan) {
  int next_gpu = 0;
  for (const DeviceGroup* group : groups_of(plan)) {
    if (group->kind == DeviceKind::cpu) {
      gpu.push_back(-1);
      memory_nodes.push_back(STARPU_MAIN_RAM);
      continue;
    }
    gpu.push_back(starpu_worker_get_by_type(STARPU_CUDA_WORKER, next_gpu++));
    if (gpu.back() < 0) throw InputError("StarPU found fewer GPUs than the plan names");
    memory_nodes.push_back(
        static_cast<int>(starpu_worker_get_memory_node(static_cast<unsigned>(gpu.back()))));
  }
  for (const PlanWorker& worker : workers_of(plan)) {
    const auto type = worker.kind == DeviceKind::cpu ? STARPU_CPU_WORKER : STARPU_CUDA_WORKER;
    workers.push_back(starpu_worker_get_by_type(type, worker.number));
    if (workers.back() < 0) throw InputError("StarPU found fewer workers than the plan names");
  }
}

}  // namespace regatta
