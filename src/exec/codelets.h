// How StarPU calls tasks: the functions that run them, and the models that say how long they take.
#pragma once

#include <starpu.h>

#include <string>

#include "exec/perf_models.h"

namespace regatta {

// StarPU writes models down when it ends, so this outlives it.
class Codelets {
 public:
  // Given the buffers and a TaskRun.
  using Function = void (*)(void* buffers[], void* run);

  Codelets(PerfModel kind, const std::string& network) : kind_(kind), models_(kind, network) {}
  Codelets(const Codelets&) = delete;
  Codelets& operator=(const Codelets&) = delete;

  // After StarPU has started.
  void describe(Function cpu, Function cuda);
  starpu_codelet* of(const Task& task, bool on_gpu);

 private:
  PerfModel kind_;
  PerfModels models_;
  starpu_perfmodel fitted_{};
  starpu_codelet cpu_{}, cuda_{};
};

}  // namespace regatta
