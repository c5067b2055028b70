// Holds tasks back until the tasks they depend on have ended, without StarPU. Used where all
// workers share one memory: StarPU then has no data to move, and a list's accesses tell beforehand
// which tasks wait for which (tasks/dependencies.h). Tasks are submitted to StarPU without data
// handles, each when nothing is left that it waits for. StarPU would derive the same order from
// data handles, but under a lock for each access, which for small tasks costs more than the rest of
// its work.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "tasks/dependencies.h"

namespace regatta {

struct TaskRun;

// Holds one task back until all tasks it depends on have ended.
class Gate {
 public:
  // An entry in the queue of tasks that wait for another one; belongs to the list of the task that
  // waits.
  struct Waiter {
    Gate* gate = nullptr;
    TaskRun* run = nullptr;
    Waiter* next = nullptr;
  };

  // Sets how many tasks of the same list must end first. Called before all other functions.
  void await(std::uint32_t tasks) { awaited_.store(tasks + 1, std::memory_order_relaxed); }
  // The task of the gate `before`, in an earlier list, must end first too, unless it has ended
  // already. `run` is the task that waits. Called before arrives().
  void wait_for(Gate& before, Waiter& waiter, TaskRun& run);
  // Counts one event that the task waits for: the end of another task, or that its whole list has
  // been set up. True if it was the last: the task may start.
  bool arrives() { return awaited_.fetch_sub(1, std::memory_order_acq_rel) == 1; }
  // The task has ended. Calls `ready` with every queued task that waits for nothing else, in the
  // order in which they were queued.
  template <class Ready>
  void open(const Ready& ready) {
    for (Waiter* waiter = close_queue(); waiter;) {
      Waiter* const next = waiter->next;  // once its task may start, `waiter` may be freed
      if (waiter->gate->arrives()) ready(*waiter->run);
      waiter = next;
    }
  }

 private:
  static Waiter nobody;   // stands in queue_ once the task has ended
  Waiter* close_queue();  // lets no more waiters in; returns the one that was queued first

  std::atomic<std::uint32_t> awaited_ = 1;  // events still to come: see arrives()
  std::atomic<Waiter*> queue_ = nullptr;    // begins with the latest waiter
};

// The gates of one submitted list.
class ListGates {
 public:
  // `runs`: the list's tasks, which get the ids `first_id`, first_id + 1, ... Both `inner` and
  // `runs` must outlive this.
  ListGates(const InnerEdges& inner, std::span<TaskRun> runs, std::int64_t first_id);

  Gate& operator[](std::size_t task) { return gates_[task]; }
  // A task has ended. Calls `ready` with every task that waited for it and now for nothing else.
  template <class Ready>
  void open(std::size_t task, const Ready& ready) {
    for (const std::uint32_t next : inner_.successors[task])
      if (gates_[next].arrives()) ready(run_of(next));
    gates_[task].open(ready);
    closed_.fetch_sub(1, std::memory_order_release);
  }
  bool all_open() const { return closed_.load(std::memory_order_acquire) == 0; }

 private:
  friend class Gates;
  TaskRun& run_of(std::size_t task) const;

  const InnerEdges& inner_;
  const std::span<TaskRun> runs_;
  const std::int64_t first_id_;
  std::vector<Gate> gates_;            // by task
  std::vector<Gate::Waiter> waiters_;  // in queues of earlier lists' gates
  std::atomic<std::size_t> closed_;    // tasks that have not ended
};

// The gates of all submitted lists that have not ended. Used only by the thread that submits.
class Gates {
 public:
  // Makes the gates of a list. Called for lists in the order of their submission. No task starts
  // before arrives() has been called once for it by the caller.
  std::shared_ptr<ListGates> follow(const TaskList& list, std::size_t step,
                                    std::span<TaskRun> runs);

 private:
  ListGates* list_with(std::int64_t id) const;  // null: the list of this task has ended

  Dependencies dependencies_;
  std::vector<Dependencies::Edge> outer_;         // reused, so that its memory is allocated once
  std::int64_t next_id_ = 0, forgotten_ = 0;      // forgotten_: last argument of forget_before()
  std::deque<std::shared_ptr<ListGates>> lists_;  // lists before the first have ended
};

}  // namespace regatta
