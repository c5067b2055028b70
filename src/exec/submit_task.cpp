#include "exec/submit_task.h"

#include <cstdlib>
#include <cstring>
#include <string>

#include "base/error.h"

namespace regatta {
namespace {

starpu_data_access_mode starpu_mode(Mode mode) {
  switch (mode) {
    case Mode::read:
      return STARPU_R;
    case Mode::write:
      return STARPU_W;
    case Mode::read_write:
      return STARPU_RW;
    case Mode::reduce:
      return STARPU_REDUX;
    case Mode::write_part:
      break;  // at gates alone, where StarPU is told of no data
  }
  throw Error("unknown access mode");
}

void set_buffers(starpu_task& task, const std::vector<Access>& accesses,
                 std::span<const starpu_data_handle_t> handles) {
  task.nbuffers = static_cast<int>(accesses.size());
  if (accesses.size() > STARPU_NMAXBUFS) {
    // StarPU frees both with the task.
    task.dyn_handles = static_cast<starpu_data_handle_t*>(
        std::malloc(accesses.size() * sizeof(starpu_data_handle_t)));
    task.dyn_modes = static_cast<starpu_data_access_mode*>(
        std::malloc(accesses.size() * sizeof(starpu_data_access_mode)));
  }
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    STARPU_TASK_SET_HANDLE((&task), handles[i], static_cast<unsigned>(i));
    STARPU_TASK_SET_MODE((&task), starpu_mode(accesses[i].mode), static_cast<unsigned>(i));
  }
}

void note_taken(void* times) { static_cast<TaskTimes*>(times)->taken = TraceClock::now(); }

}  // namespace

void submit_task(TaskRun& run, starpu_codelet* codelet,
                 std::span<const starpu_data_handle_t> handles, int worker,
                 void (*ended)(void* run)) {
  starpu_task* task = starpu_task_create();
  task->cl = codelet;
  if (worker >= 0) {
    task->execute_on_a_specific_worker = 1;
    task->workerid = static_cast<unsigned>(worker);
  }
  task->cl_arg = &run;
  task->cl_arg_size = sizeof run;
  if (!run.at_gates()) set_buffers(*task, run.task->accesses, handles);
  task->priority = run.task->priority;
  task->sched_data = &run;
  task->name = phase_name(run.task->actions.front().phase).data();
  task->callback_func = ended;
  task->callback_arg = &run;
  run.starpu = task;
  // It ends when its messages have arrived, not when a worker has started them.
  if (travels(*run.task)) starpu_task_end_dep_add(task, 1);
  if (run.times) {
    task->prologue_callback_pop_func = note_taken;
    task->prologue_callback_pop_arg = run.times;
  }
  if (const int code = starpu_task_submit(task); code != 0) {
    starpu_task_destroy(task);
    throw Error(std::string("StarPU refused a task: ") + std::strerror(-code));
  }
}

}  // namespace regatta
