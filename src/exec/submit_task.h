// A task of a list becomes one of StarPU's.
#pragma once

#include <starpu.h>

#include <span>

#include "exec/submission.h"

namespace regatta {

// Who runs a task, by StarPU's number; -1: whoever its codelet allows.
struct BoundTo {
  int worker = -1;
  // Among the worker's tasks of all steps, from 1 and without gaps: StarPU holds back what comes
  // too early. 0: once it is ready.
  unsigned turn = 0;
};

// `ended` is called with the run, on the worker, when it has.
void submit_task(TaskRun& run, starpu_codelet* codelet,
                 std::span<const starpu_data_handle_t> handles, const BoundTo& bound,
                 void (*ended)(void* run));

}  // namespace regatta
