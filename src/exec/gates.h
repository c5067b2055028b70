// Which task waits for which where all workers share one memory. There StarPU has nothing to move,
// and a list's accesses tell beforehand which tasks wait for which (tasks/dependencies.h): so its
// tasks name no data, and each is submitted to StarPU once all before it are done. StarPU would
// conclude the same from the data, task by task and under locks, which takes longer than all else
// it does for small tasks.
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

  // `tasks` of the same list must end first; called before anything else.
  void await(std::uint32_t tasks) { awaited_.store(tasks + 1, std::memory_order_relaxed); }
  // So must the task of `before`, unless it has; called before arrives().
  void wait_for(Gate& before, Waiter& waiter, TaskRun& run);
  // The task was handed over, or a task that it waits for has ended. True if that was the last.
  bool arrives() { return awaited_.fetch_sub(1, std::memory_order_acq_rel) == 1; }
  // The task has ended. `ready` is called with every task in the queue that waits for nothing else,
  // in the order in which they came.
  template <class Ready>
  void open(const Ready& ready) {
    for (Waiter* waiter = close_queue(); waiter;) {
      Waiter* const next = waiter->next;  // a task that may start may be gone at once
      if (waiter->gate->arrives()) ready(*waiter->run);
      waiter = next;
    }
  }

 private:
  static Waiter nobody;   // the queue of an open gate
  Waiter* close_queue();  // the first of it

  std::atomic<std::uint32_t> awaited_ = 1;  // tasks, and being handed over
  std::atomic<Waiter*> queue_ = nullptr;    // the last to come first
};

// The gates of one submitted list.
class ListGates {
 public:
  // The runs of the list's tasks, and `inner`, must stay.
  ListGates(const InnerEdges& inner, std::span<TaskRun> runs, std::int64_t first_id);

  Gate& operator[](std::size_t task) { return gates_[task]; }
  // A task has ended: `ready` is called with every task that waits for nothing else.
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
  std::vector<Gate::Waiter> waiters_;  // for tasks of lists before
  std::atomic<std::size_t> closed_;
};

// The gates of all submitted lists that have not ended. Used by the thread that submits.
class Gates {
 public:
  // Lists in the order of their submission. No task has been handed over yet.
  std::shared_ptr<ListGates> follow(const TaskList& list, std::size_t step,
                                    std::span<TaskRun> runs);

 private:
  ListGates* list_with(std::int64_t id) const;  // null: all of it is done

  Dependencies dependencies_;
  std::vector<Dependencies::Edge> outer_;  // kept for its memory
  std::int64_t next_id_ = 0, forgotten_ = 0;
  std::deque<std::shared_ptr<ListGates>> lists_;  // the first has a closed gate
};

}  // namespace regatta
