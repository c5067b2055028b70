// Holds tasks back until the tasks they depend on have ended, without StarPU: a list's accesses
// tell beforehand which tasks wait for which (tasks/dependencies.h). Tasks are submitted to StarPU
// without data handles, each when nothing is left that it waits for. StarPU would derive the same
// order from data handles, but under a lock for each access, which for small tasks costs more than
// the rest of its work, and it would bring data from memory to memory only when a task wants it. A
// GPU carries out its tasks in the order in which they are handed to it. So one of its tasks does
// not wait for the end of another one of them, only until that was handed over.
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

// Holds one task back until all it depends on have ended, or were handed to the GPU it runs on.
class Gate {
 public:
  // An entry in the queue of tasks that wait for another one; belongs to the list of the task that
  // waits.
  struct Waiter {
    Gate* gate = nullptr;
    TaskRun* run = nullptr;
    Waiter* next = nullptr;
  };
  // The tasks that wait until another one was handed to its GPU, or has ended: see below.
  class Queue {
   public:
    bool add(Waiter& waiter);  // false: that has happened already
    // Calls `ready` with every queued task that waits for nothing else, in the order in which they
    // were queued.
    template <class Ready>
    void open(const Ready& ready) {
      for (Waiter* waiter = close(); waiter;) {
        Waiter* const next = waiter->next;  // once its task may start, `waiter` may be freed
        if (waiter->gate->count_down()) ready(*waiter->run);
        waiter = next;
      }
    }

   private:
    static Waiter closed;  // stands in latest_ once the queue is closed
    Waiter* close();       // lets no more waiters in; returns the one that was queued first

    std::atomic<Waiter*> latest_ = nullptr;
  };

  // Sets how many tasks of the same list must come first. Called before all other functions.
  void expect(std::uint32_t tasks) { expected_.store(tasks + 1, std::memory_order_relaxed); }
  // A task of an earlier list must open the queue `before` first, if it has not. `run` is the task
  // that waits. Called before count_down().
  void wait_for(Queue& before, Waiter& waiter, TaskRun& run);
  // Counts one event that the task waits for: one of those tasks was handed over or has ended, or
  // its whole list has been set up. True if it was the last: the task may start.
  bool count_down() { return expected_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

  Queue handed_over;  // tasks of the same GPU that wait until this one was handed to it
  Queue ended;        // all others that wait for this one

 private:
  std::atomic<std::uint32_t> expected_ = 1;  // events still to come: see count_down()
};

// The gates of one submitted list.
class ListGates {
 public:
  // `runs`: the list's tasks, which get the ids `first_id`, first_id + 1, ... Both `inner` and
  // `runs` must outlive this.
  ListGates(const InnerEdges& inner, std::span<TaskRun> runs, std::int64_t first_id);

  Gate& operator[](std::size_t task) { return gates_[task]; }
  // A task of a GPU was handed to it. Calls `ready` with every task that waited for that and now
  // for nothing else.
  template <class Ready>
  void open_handed_over(std::size_t task, const Ready& ready) {
    open(task, gates_[task].handed_over, true, ready);
  }
  // A task has ended. Calls `ready` with every task that waited for that and now for nothing else.
  template <class Ready>
  void open_ended(std::size_t task, const Ready& ready) {
    open(task, gates_[task].ended, false, ready);
    closed_.fetch_sub(1, std::memory_order_release);
  }
  bool all_open() const { return closed_.load(std::memory_order_acquire) == 0; }

 private:
  friend class Gates;
  TaskRun& run_of(std::size_t task) const;
  // Both are tasks of one GPU, which carries them out one after the other.
  bool in_order(std::size_t task, std::size_t next) const;
  template <class Ready>
  void open(std::size_t task, Gate::Queue& queue, bool handed_over, const Ready& ready) {
    for (const std::uint32_t next : inner_.successors[task])
      if (in_order(task, next) == handed_over && gates_[next].count_down()) ready(run_of(next));
    queue.open(ready);
  }

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
  // before count_down() has been called once for it by the caller.
  std::shared_ptr<ListGates> add(const TaskList& list, std::size_t step, std::span<TaskRun> runs);

 private:
  ListGates* list_with(std::int64_t id) const;  // null: the list of this task has ended

  Dependencies dependencies_;
  std::vector<Dependencies::Edge> outer_;         // reused, so that its memory is allocated once
  std::int64_t next_id_ = 0, forgotten_ = 0;      // forgotten_: last argument of forget_before()
  std::deque<std::shared_ptr<ListGates>> lists_;  // lists before the first have ended
};

}  // namespace regatta
