#include "exec/codelets.h"

#include "exec/submission.h"

namespace regatta {

void Codelets::describe(Function cpu, Function cuda) {
  starpu_perfmodel_init(&fitted_);
  fitted_.type = STARPU_PER_WORKER;
  fitted_.worker_cost_function = [](starpu_task* task, unsigned, unsigned) {
    return static_cast<TaskRun*>(task->cl_arg)->predicted_us;
  };
  fitted_.symbol = "regatta";

  for (starpu_codelet* codelet : {&cpu_, &cuda_}) {
    starpu_codelet_init(codelet);
    codelet->nbuffers = STARPU_VARIABLE_NBUFFERS;
    codelet->model = &fitted_;
    codelet->name = "regatta";
  }
  cpu_.where = STARPU_CPU;
  cpu_.cpu_funcs[0] = cpu;
  cuda_.where = STARPU_CUDA;
  cuda_.cuda_funcs[0] = cuda;
  cuda_.cuda_flags[0] = STARPU_CUDA_ASYNC;
  models_.describe(cpu_, cuda_);
}

starpu_codelet* Codelets::of(const Task& task, bool on_gpu) {
  if (kind_ != PerfModel::fitted) return models_.of(task, on_gpu);
  return on_gpu ? &cuda_ : &cpu_;
}

}  // namespace regatta
