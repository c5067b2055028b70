#include "exec/redux.h"

#include <cstring>

#include "backends/cpu/elementwise.h"
#include "exec/cuda_runner.h"
#include "exec/recording.h"

namespace regatta {
namespace {

float* floats_of(void* buffer) { return reinterpret_cast<float*>(STARPU_VARIABLE_GET_PTR(buffer)); }

std::size_t bytes_of(void* buffer) { return STARPU_VARIABLE_GET_ELEMSIZE(buffer); }

void zero_on_cpu(void* buffers[], void*) {
  const Recording::OwnTask noted("reduce+zero");
  std::memset(floats_of(buffers[0]), 0, bytes_of(buffers[0]));
}

void add_on_cpu(void* buffers[], void*) {
  const Recording::OwnTask noted("reduce");
  cpu::add_to(floats_of(buffers[0]), floats_of(buffers[1]), bytes_of(buffers[0]) / sizeof(float));
}

// Part of the first task that adds to the sum, on the same stream: nothing to note.
void zero_on_gpu(void* buffers[], void*) {
  enqueue_zero(floats_of(buffers[0]), bytes_of(buffers[0]) / sizeof(float));
}

void add_on_gpu(void* buffers[], void*) {
  Recording::own_device_task_begins();
  enqueue_add(floats_of(buffers[0]), floats_of(buffers[1]), bytes_of(buffers[0]) / sizeof(float));
}

}  // namespace

ReduxCodelets::ReduxCodelets() {
  starpu_codelet_init(&zero_);
  zero_.cpu_funcs[0] = zero_on_cpu;
  zero_.nbuffers = 1;
  zero_.modes[0] = STARPU_W;
  zero_.name = "zero";

  starpu_codelet_init(&add_);
  add_.cpu_funcs[0] = add_on_cpu;
  add_.nbuffers = 2;
  add_.modes[0] = static_cast<starpu_data_access_mode>(int(STARPU_RW) | int(STARPU_COMMUTE));
  add_.modes[1] = STARPU_R;
  add_.name = "add";

  if (starpu_cuda_worker_get_count() == 0) return;
  zero_.cuda_funcs[0] = zero_on_gpu;
  add_.cuda_funcs[0] = add_on_gpu;
  zero_.cuda_flags[0] = add_.cuda_flags[0] = STARPU_CUDA_ASYNC;
  // StarPU makes these tasks, so only the codelet can say what happens at their end.
  add_.callback_func = [](void*) { Recording::own_device_task_ends("reduce"); };
}

}  // namespace regatta
