// A task of a list becomes one of StarPU's.
#pragma once

#include <starpu.h>

#include <span>

#include "exec/submission.h"

namespace regatta {

// `worker`: the one that StarPU gives it to without asking a scheduler; -1: none. `ended` is called
// with the run, on the worker, when it has.
void submit_task(TaskRun& run, starpu_codelet* codelet,
                 std::span<const starpu_data_handle_t> handles, int worker,
                 void (*ended)(void* run));

}  // namespace regatta
