// Where the time of a record went, and why workers slept.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trace/trace.h"

namespace regatta::trace {

// Why a worker slept. docs/trace.md tells how each is recognised.
enum class Cause {
  dependency,     // waits for a task of the same step
  meeting,        // chunks meet (batch norm): waits for the slowest, or for the combine
  reduction,      // gradients are summed, parameters updated or packed
  tail,           // the step has no more work for it; the next one waits for the last tasks
  loader,         // samples are not there yet
  queued,         // a ready task sat in another worker's queue, behind a task that ran on
  too_few_tasks,  // the step has fewer tasks to offer than there are workers
  transfer,       // data was on its way between memories
  submission,     // everything was there, but the task had not been submitted
  scheduling,     // a ready task had not reached its worker yet
  exchange,       // a message between nodes was on its way
  straggler,      // an exchange waited for the node that came to it last
  outside,        // the record does not tell: it has nothing that the worker could have waited for
};
inline constexpr std::size_t cause_count = 13;
std::string_view cause_name(Cause cause);
std::string_view cause_text(Cause cause);  // a sentence for people

struct IdleInterval {
  std::int32_t worker = 0;
  Time start = 0, end = 0;
  Cause cause = Cause::dependency;
  std::int64_t task = -1;  // waited for, or in the way; the one that came late; -1: none
  bool overran = false;    // that task ran longer than predicted
};

struct WorkerUse {
  // Their sum is the window's wall time, exactly. Of a lane of messages only `busy` is told: while
  // something was on its way.
  Time busy = 0, idle = 0, overhead = 0;
  std::int64_t tasks = 0;
  std::array<Time, cause_count> causes{};  // of the idle time; their sum is `idle`
};

// Tasks of one kind, over the window.
struct KindUse {
  std::int32_t kind = 0;
  std::int64_t tasks = 0;
  Time busy = 0;
  Time critical = 0;  // of its tasks on the critical path
  Time blamed = 0;    // idle time of all workers that its tasks are to blame for
  // Wall time saved if it took none: (busy + blamed) / workers.
  double gain_s = 0;
};

struct Window {
  Time start = 0, end = 0;
  std::int64_t first_step = 0, last_step = 0;  // 0: not by steps
};

struct Analysis {
  Window window;
  std::int64_t tasks = 0;          // that touch the window
  std::int64_t steps = 0;          // that end in it
  std::vector<WorkerUse> workers;  // by worker
  std::vector<IdleInterval> idle;  // by worker, then time; disjoint
  std::array<Time, cause_count> causes{};
  std::vector<std::int64_t> critical_path;  // task ids, first to last
  Time critical = 0;                        // its length
  Time work = 0;                            // busy time of all workers
  Time bound = 0;              // no schedule of these tasks on so many workers takes less
  double imbalance = 0;        // busiest worker's busy time over the mean, minus one
  std::vector<KindUse> kinds;  // most helpful first
  // Share of the workers' CPU time that others took, mean over its steps; none: nobody measured.
  std::optional<double> taken_by_others;

  Time wall() const { return window.end - window.start; }
  double efficiency() const;  // bound / wall; 1 is the best possible
};

// The steps `first` to `last`, both included: from the end of the step before to the end of the
// last. Throws InputError if the record has none of them.
Window window_of_steps(const Record& record, std::int64_t first, std::int64_t last);
// The steps that were asked for; without such, from the first task's start to the last one's end.
Window whole_window(const Record& record);

Analysis analyse(const Record& record, const Window& window);

// Tasks without a ready time get the latest end of what they depend on, or their submission.
void fill_ready(Record& record);

}  // namespace regatta::trace
