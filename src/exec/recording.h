// What the executor notes for the record of a run. A worker writes the times of its tasks into
// places of their own, so nothing is locked; finished lists are handed to the recorder.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "exec/kernel_times.h"
#include "graph/program.h"
#include "tasks/dependencies.h"
#include "trace/recorder.h"

namespace regatta {

using TraceClock = trace::Recorder::Clock;

struct OperatorTime {
  const Node* node = nullptr;  // none: a whole action
  Phase phase = Phase::forward;
  Work work = Work::forward;
  TraceClock::time_point start, end;
  std::chrono::nanoseconds cpu{0};  // of the thread, if it is large
};

// What is timed inside a task. With operators comes how long the thread really ran: on a machine
// that others use too, the rest is theirs. Asking is a system call, which also slows down what
// follows, so it is asked once for the task, and for each operator only if that is large.
enum class Depth { task, operators, large_operators };

struct TaskTimes {
  TraceClock::time_point submit, start, end;
  TraceClock::time_point taken;  // by a worker, which then gets the task's data
  std::chrono::nanoseconds acquire{0};
  std::chrono::nanoseconds cpu{0};  // of the thread, if operators are timed
  int worker = -1;                  // StarPU's number
  double predicted_us = 0;  // what StarPU's scheduler reckoned with; 0 or NaN if it did not care
  Depth depth = Depth::task;
  std::vector<OperatorTime> operators;
};

// How long the calling thread has run on a processor.
std::chrono::nanoseconds thread_time();

// Times one operator or action for as long as it lives; does nothing without a place to write.
class OperatorTimer {
 public:
  OperatorTimer(TaskTimes* times, Phase phase, const Node* node = nullptr,
                Work work = Work::forward)
      : times_(times && times->depth != Depth::task ? times : nullptr) {
    if (!times_) return;
    if (times_->depth == Depth::large_operators) cpu_ = thread_time();
    times_->operators.push_back({node, phase, work, TraceClock::now(), {}});
  }
  ~OperatorTimer() {
    if (!times_) return;
    OperatorTime& mine = times_->operators.back();
    mine.end = TraceClock::now();
    if (times_->depth == Depth::large_operators) mine.cpu = thread_time() - cpu_;
  }
  OperatorTimer(const OperatorTimer&) = delete;
  OperatorTimer& operator=(const OperatorTimer&) = delete;

 private:
  TaskTimes* times_;
  std::chrono::nanoseconds cpu_{0};
};

// On a GPU's worker, in the order in which its tasks end: one has, now. It was handed over at
// `start`; the GPU began it when the one before had ended.
void device_task_ended(int worker, TraceClock::time_point& start, TraceClock::time_point& end);

struct Submission;
struct TaskRun;

// On the worker, when a task that is timed has ended.
void note_end(const TaskRun& run);

// For as long as it lives, what this thread launches is marked as the task's.
class LaunchesOf {
 public:
  explicit LaunchesOf(const TaskRun& run);
  ~LaunchesOf();
  LaunchesOf(const LaunchesOf&) = delete;
  LaunchesOf& operator=(const LaunchesOf&) = delete;

 private:
  cuda::KernelLog* kernels_;
};

class Recording {
 public:
  Recording(std::shared_ptr<trace::Recorder> recorder, const Blueprint& blueprint);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // Why something that was asked for is not recorded, for a reader to be told once; or empty.
  const std::string& remark() const { return remark_; }

  // Whether the list that is about to be submitted is recorded; gives it the places to write to.
  bool begin(Submission& submission, const TaskList& list);
  // All its tasks have ended. Lists come in the order of their submission.
  void take(const Submission& submission, TraceClock::time_point finished);
  // A copy between main memory and a GPU's that is a part of a task at gates. On any thread.
  void copied(bool to_gpu, std::size_t bytes);
  // Nothing is on its way and nothing more comes: totals of the links.
  void close();

  // A task that StarPU makes by itself: its reductions. On the worker, for as long as it lives.
  class OwnTask {
   public:
    explicit OwnTask(const char* phases) : phases_(phases), start_(TraceClock::now()) {}
    ~OwnTask();
    OwnTask(const OwnTask&) = delete;
    OwnTask& operator=(const OwnTask&) = delete;

   private:
    const char* phases_;
    TraceClock::time_point start_;
  };
  // The same on a GPU, where the function that begins it only hands it over.
  static void own_device_task_begins();
  static void own_device_task_ends(const char* phases);

 private:
  struct OwnTime {
    const char* phases;
    int worker;
    TraceClock::time_point start, end;
  };

  void add_workers();
  std::vector<std::int32_t> exchange_lanes(const Submission& submission, const TaskList& list);
  std::int32_t exchange_lane(trace::Time start, trace::Time end);
  std::int32_t first_kind(const TaskList& list);
  std::int32_t own_kind(const char* phases);
  void take_operators(const TaskTimes& times, const trace::Task& task);
  void take_own(std::int64_t step);
  void note_own(const OwnTime& time);
  ClockMatch::Reading read_clocks() const;
  void take_kernels(bool all);
  void hand_over();
  void take_links();
  void pass_kernels();
  void close_kernels();

  std::shared_ptr<trace::Recorder> recorder_;
  const Blueprint& blueprint_;
  Dependencies dependencies_;
  std::vector<std::int32_t> workers_;  // by StarPU's number
  // Lanes for exchanges between ranks; exchanges that overlap in time are in different lanes. Each
  // lane's index into trace::Record::workers, and the end of its latest exchange.
  std::vector<std::pair<std::int32_t, trace::Time>> exchange_lanes_;
  // By StarPU's number, each used on its worker's thread alone: when the GPU was handed those of
  // StarPU's own tasks that have not ended.
  std::vector<std::deque<TraceClock::time_point>> handed_;
  std::map<const TaskList*, std::int32_t> kinds_;  // of a list's first task
  std::map<std::string, std::int32_t> own_kinds_;
  // StarPU knows how long transfers take, and tells at more than a microsecond a task: each time a
  // worker asks for one it reads the clock. At gates, or where there is one memory, StarPU makes
  // none.
  const bool transfers_;
  struct Copies {
    std::atomic<std::int64_t> bytes = 0, count = 0;
  };
  Copies to_gpu_, from_gpu_;
  std::atomic<bool> on_ = false;                 // what begins now is recorded; workers ask
  std::unique_ptr<cuda::KernelLog> kernel_log_;  // of operators on GPUs, if CUPTI is there
  KernelTimes kernels_;
  ClockMatch clocks_;
  std::size_t lists_ = 0, lists_taken_ = 0;                // recorded ones
  std::map<std::int32_t, std::int32_t> worker_of_device_;  // CUDA's number to the record's
  std::string remark_;
  std::mutex own_mutex_;
  std::vector<OwnTime> own_;
  // Used again and again.
  trace::Piece piece_;
  std::vector<Dependencies::Edge> edges_;
};

}  // namespace regatta
