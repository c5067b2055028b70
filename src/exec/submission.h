// A task list on its way, and what it brings back.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/update.h"
#include "exec/executor.h"
#include "exec/gates.h"
#include "exec/memory.h"
#include "exec/recording.h"
#include "tasks/policy.h"

struct starpu_task;

namespace regatta {

// A task of a list on its way; lives as long as its submission.
struct TaskRun {
  Executor::Impl* executor = nullptr;
  Submission* submission = nullptr;
  const TaskList* list = nullptr;
  const Task* task = nullptr;
  TaskTimes* times = nullptr;  // of a run that is recorded
  double predicted_us = 0;     // by our own costs
  starpu_task* starpu = nullptr;
  // For our scheduler: the task's priority and fixed worker (StarPU's number); and the worker that
  // ran the previous task of the same chunk, null for a task without a chunk.
  ReadyTask ready{};
  std::atomic<int>* last_worker = nullptr;
  // At gates: the data of its accesses. Null: StarPU knows what it accesses, and holds it back.
  const BufferData* data = nullptr;
  int gpu = -1;  // the group of the GPU that runs it; -1: a CPU worker or no worker does

  bool at_gates() const { return data != nullptr; }
};

struct Submission {
  ListKind job = ListKind::train;
  StepInput input;
  UpdateNumbers numbers;  // of the step it belongs to
  std::uint64_t seed = 0;
  std::vector<ChunkSpan> spans;        // of this rank's chunks
  std::vector<ChunkSpan> batch_spans;  // of the whole batch's
  StepResult result;
  bool checks_values = false;  // notes the first value that is not finite; nothing fails by it
  std::vector<TaskRun> runs;
  std::shared_ptr<ListGates> gates;  // null: StarPU knows what tasks wait for
  std::vector<TaskTimes> times;      // by task, if recorded or watched
  std::size_t exchanged_as = 0;    // among the lists with messages between ranks, as on all of them
  Recording* recording = nullptr;  // the record that this list is noted for; null: none
  cuda::KernelLog* kernels = nullptr;      // to which launches of GPU tasks are marked
  std::size_t number = 0;                  // of all lists submitted
  std::int64_t step = 0;                   // times that its list was submitted before
  std::atomic<std::size_t> undone = 0;     // tasks that have not run
  std::atomic<std::size_t> remaining = 0;  // tasks whose end has not been noted; waited on
  std::atomic<bool> failed = false;

  // The first failure counts; tasks after it do nothing.
  void fail(std::exception_ptr cause);
  void task_done();      // its last kernel has ended
  void task_finished();  // and no thread will touch it
  // Something that is not finite was seen. Chunks run side by side: of all sightings the one that
  // is first in the order of the program is kept.
  void saw(std::size_t order, std::string what);
  const std::string& first_seen() const { return first_seen_; }
  // With `spin` it first looks for a while without sleeping: waking a thread costs more than a
  // small network's step.
  void await(bool spin) const;
  // Throws what a task threw.
  StepResult wait(bool spin);

 private:
  std::mutex mutex_;
  std::exception_ptr error_;
  std::size_t first_order_ = 0;
  std::string first_seen_;
};

// The submission of a list of this kind, with room for its results. The caller fills in what
// depends on the lists before.
std::shared_ptr<Submission> make_submission(const Blueprint& blueprint, ListKind job,
                                            StepInput input, std::uint64_t seed);

}  // namespace regatta
