// Which task waits for which where all workers share one memory. There StarPU has nothing to move,
// and a list's accesses tell beforehand which tasks wait for which (tasks/dependencies.h): so its
// tasks name no data, and our scheduler holds each back until those before it are done. StarPU
// would conclude the same from the data, task by task and under locks, which takes longer than all
// else it does for small tasks.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "tasks/dependencies.h"

namespace regatta {

struct TaskRun;

// Holds one task back until all tasks it depends on have ended.
class Gate {
 public:
  // In the queue of those that wait at a gate; belongs to the one that waits.
  struct Place {
    Gate* gate = nullptr;
    TaskRun* run = nullptr;
    Place* behind = nullptr;
  };

  // Until `before` opens, if it has not; called before arrives().
  void wait_for(Gate& before, Place& place, TaskRun& run);
  // The task was handed over, or what it waited for is done. True if that was the last.
  bool arrives() { return awaited_.fetch_sub(1, std::memory_order_acq_rel) == 1; }
  // The task is done. `ready` is called with every one that waited for nothing else, in the order
  // in which they came.
  template <class Ready>
  void open(const Ready& ready) {
    for (Place* place = close_queue(); place;) {
      Place* const next = place->behind;  // a task that may start may be gone at once
      if (place->gate->arrives()) ready(*place->run);
      place = next;
    }
  }

 private:
  static Place nobody;   // the queue of an open gate
  Place* close_queue();  // the first of it

  std::atomic<int> awaited_ = 1;         // tasks, and being handed over
  std::atomic<Place*> queue_ = nullptr;  // the last to come first
};

// The gates of one submitted list.
class ListGates {
 public:
  ListGates(const TaskList& list, std::int64_t first_id, std::size_t step);

  Gate& operator[](std::size_t task) { return gates_[task]; }
  template <class Ready>
  void open(std::size_t task, const Ready& ready) {
    gates_[task].open(ready);
    closed_.fetch_sub(1, std::memory_order_release);
  }
  bool all_open() const { return closed_.load(std::memory_order_acquire) == 0; }

 private:
  friend class Gates;
  const TaskList& list_;
  const std::int64_t first_id_;
  const std::size_t step_;
  std::vector<Gate> gates_;         // by task
  std::deque<Gate::Place> places_;  // that its tasks take, here and in lists before
  std::atomic<std::size_t> closed_;
};

// The gates of all submitted lists that have not ended.
class Gates {
 public:
  // Lists in the order of their submission, by one thread.
  std::shared_ptr<ListGates> follow(const TaskList& list, std::size_t step);
  // Task by task, by whoever hands the list over: it waits for whom it must.
  void line_up(TaskRun& run, std::size_t task, ListGates& list);

 private:
  ListGates* list_with(std::int64_t id) const;  // null: all of it is done

  Dependencies dependencies_;
  std::int64_t next_id_ = 0, forgotten_ = 0;
  std::mutex mutex_;
  std::deque<std::shared_ptr<ListGates>> lists_;  // the first has a closed gate
};

}  // namespace regatta
