// A rank's workers carrying out its steps in simulated time: they take ready tasks by the node's
// policy, pay the runtime's overhead, and work slower while others of their group are busy.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "sim/work.h"
#include "sim/world.h"
#include "tasks/placement.h"
#include "tasks/policy.h"

namespace regatta::sim {

// When a task of a step was where; seconds of simulated time.
struct Happened {
  std::int32_t worker = -1;  // of the rank
  double submit = 0, ready = 0, start = 0, end = 0;
  double fetched = 0;  // when its data or its exchange was complete
};

// Where a rank's pools and memories are in the world.
struct Berth {
  std::vector<int> hosts;                // by pool
  std::vector<std::vector<int>> routes;  // by memories, from and to; -1: the same memory
  std::vector<std::vector<double>> latencies;
};

class Crew {
 public:
  struct Events {
    // A bucket's gradients are complete on this rank; exchanged() must be called in time.
    std::function<void(std::int64_t step, BucketId)> offer;
    std::function<void(std::int64_t step)> step_done;
  };
  struct Options {
    std::int64_t steps = 1;
    // The thread that submits has no CPU of its own: what it does, a worker does not.
    bool crowded = false;
    // By task: how many half-intervals its cost is away from the estimate.
    std::vector<double> shifts;
    std::uint64_t seed = 1;  // of how far tasks spread
  };
  Crew(World& world, const Work& work, const Berth& berth, Options options, Events events);

  void begin();
  void exchanged(std::int64_t step, BucketId bucket);

  const std::vector<Happened>& happened() const { return happened_; }  // by step, then task
  double finished(std::int64_t step) const { return finished_[static_cast<std::size_t>(step)]; }
  int workers() const { return static_cast<int>(workers_.size()); }
  double bytes_fetched() const { return bytes_fetched_; }

 private:
  struct Worker {
    std::size_t pool = 0;
    std::int64_t task = -1;  // counted over all steps; -1: none
    bool just_finished = false;
    double stolen = 0;  // by the thread that submits, to be made good
    double free = 0;    // when it has released what waited for its last task
    double left = 1;    // part of the task
    double since = 0;   // when `left` was right
    double slowness = 1;
    double luck = 1;  // with its task
  };
  struct Place {  // a copy of a buffer: the memories that have it, as bits
    std::uint64_t valid = 0;
  };

  std::size_t count() const { return work_.tasks(); }
  std::int64_t number(std::int64_t step, std::size_t task) const {
    return step * static_cast<std::int64_t>(count()) + static_cast<std::int64_t>(task);
  }
  std::int64_t step_of(std::int64_t id) const { return id / static_cast<std::int64_t>(count()); }
  std::size_t task_of(std::int64_t id) const { return static_cast<std::size_t>(id) % count(); }
  Happened& at(std::int64_t id) { return happened_[static_cast<std::size_t>(id)]; }

  void submit(std::int64_t step, double when);
  void submit_more();
  void rob(double seconds);
  void released(std::int64_t id, double late = 0);
  void become_ready(std::int64_t id, double late = 0);
  void fetch(std::int64_t id);
  void send(int route, double bytes, World::Then arrived);
  void send_next(int route);
  void queue(std::int64_t id);
  void hand_out();
  void take(int worker, std::int64_t id);
  void begin_to_submit(const Worker& worker);
  void settle(std::size_t pool);
  void work_on(int worker);
  void piece_done(int worker);
  void finish(int worker);
  Place& place_of(std::uint32_t buffer, std::int64_t step);
  // A worker's task, whole, while so many are busy.
  double seconds(const Worker& worker, int busy) const {
    const std::size_t task = task_of(worker.task);
    return worker.slowness * worker.luck * work_.seconds(task, busy, shift(task));
  }
  double shift(std::size_t task) const {
    return options_.shifts.empty() ? 0 : options_.shifts[task];
  }

  World& world_;
  const Work& work_;
  const Berth& berth_;
  Options options_;
  Events events_;
  std::vector<Happened> happened_;
  std::vector<std::uint32_t> waits_;   // of all steps
  std::vector<std::uint32_t> offers_;  // exchanges that a task still waits for
  std::vector<std::size_t> left_of_step_;
  std::vector<bool> submitted_;  // by step: its times are known
  std::vector<double> finished_;
  double submitting_until_ = 0;
  std::int64_t next_step_ = 0, steps_done_ = 0;  // to be submitted; ended
  std::vector<Worker> workers_;
  std::vector<Spread> spreads_;  // by pool
  Turns turns_;
  std::vector<std::vector<ReadyTask>> ready_;  // by pool
  std::vector<int> busy_;                      // by pool
  std::vector<int> homes_;                     // by chunk
  std::vector<std::size_t> first_place_;       // by buffer
  std::vector<Place> places_;
  double bytes_fetched_ = 0;
  struct Parcel {
    double bytes = 0;
    World::Then arrived;
  };
  std::map<int, std::deque<Parcel>> sending_;  // by route, of a pipeline; the first is on its way
  bool gathering_ = false;  // several tasks become ready at once: nobody takes one before all did
};

}  // namespace regatta::sim
