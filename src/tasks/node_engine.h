// Carries out the steps of a rank in simulated time: its workers take ready tasks by the node's
// policy, pay the runtime's overhead, and work slower while others of their group are busy. The
// planner runs it on an event heap, the simulator on SimGrid.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "tasks/clock.h"
#include "tasks/node_work.h"
#include "tasks/placement.h"
#include "tasks/policy.h"

namespace regatta {

// When a task of a step was where; seconds of simulated time.
struct TaskEvents {
  std::int32_t worker = -1;  // of the rank
  double submit = 0, ready = 0;
  double fetched = 0;  // when its data or its exchange was complete
  double taken = 0;    // by its worker, which the runtime keeps busy until `start`
  double start = 0, end = 0;
};

// Where a rank's pools and memories are in the simulated world.
struct RankHosts {
  std::vector<int> hosts;                // by pool
  std::vector<std::vector<int>> routes;  // [from][to] memory; -1: a transfer costs nothing
  std::vector<std::vector<double>> latencies;
};

class NodeEngine {
 public:
  struct Callbacks {
    // This rank has its part of an exchange; exchanged() must be called in time.
    std::function<void(std::int64_t step, ExchangeId)> offer;
    std::function<void(std::int64_t step)> step_done;
  };
  struct Options {
    std::int64_t steps = 1;
    // The thread that submits has no CPU of its own, and takes time from the workers.
    bool crowded = false;
    // By task: how many half-intervals its cost is away from the estimate.
    std::vector<double> shifts;
    std::uint64_t seed = 1;  // of how far tasks spread
  };
  NodeEngine(Clock& clock, const NodeWork& work, const RankHosts& hosts, Options options,
             Callbacks callbacks);

  void begin();
  void exchanged(std::int64_t step, ExchangeId exchange);

  const std::vector<TaskEvents>& events() const { return events_; }  // by step, then task
  double finished(std::int64_t step) const { return finished_[static_cast<std::size_t>(step)]; }
  int workers() const { return static_cast<int>(workers_.size()); }
  std::size_t pool_of_worker(int worker) const {
    return workers_[static_cast<std::size_t>(worker)].pool;
  }
  double bytes_fetched() const { return bytes_fetched_; }
  // Joules of the tasks that have ended, by the watts that the plan gives a pool's workers.
  double joules(std::size_t pool) const { return joules_[pool]; }

 private:
  struct Worker {
    std::size_t pool = 0;
    std::int64_t task = -1;  // counted over all steps; -1: none
    bool just_finished = false;
    // Seconds that the submitting thread took from this worker; its next task starts later by them.
    double submission_debt = 0;
    double free = 0;   // when it has released what waited for its last task
    double delay = 0;  // seconds of the runtime before the task starts
    double left = 1;   // part of the task's work, from 1 to 0
    Clock::WorkId under_way = 0;
    WorkerPower power = {};  // as the plan says
    double time_factor = 1;  // of this run of its task, by Spread
  };
  struct BufferCopy {
    std::uint64_t valid_in = 0;  // bit m: memory m holds a valid copy
  };
  struct Message {
    double bytes = 0;
    Clock::Then arrived;
  };

  std::size_t count() const { return work_.tasks(); }
  std::int64_t number(std::int64_t step, std::size_t task) const {
    return step * static_cast<std::int64_t>(count()) + static_cast<std::int64_t>(task);
  }
  std::int64_t step_of(std::int64_t id) const { return id / static_cast<std::int64_t>(count()); }
  std::size_t task_of(std::int64_t id) const { return static_cast<std::size_t>(id) % count(); }
  TaskEvents& at(std::int64_t id) { return events_[static_cast<std::size_t>(id)]; }

  void submit(std::int64_t step, double when);
  void submit_more();
  void charge_submission(double seconds);
  void released(std::int64_t id, double late = 0);
  void become_ready(std::int64_t id, double late = 0);
  void fetch(std::int64_t id);
  void send(int route, double bytes, Clock::Then arrived);
  void send_next(int route);
  void queue(std::int64_t id);
  void assign_tasks();
  void take(int worker, std::int64_t id);
  void change_speeds(std::size_t pool);
  void start_work(int worker);
  void finish(int worker);
  BufferCopy& copy_of(std::uint32_t buffer, std::int64_t step);
  // Seconds of a worker's whole task while `busy` workers of its pool have a task.
  double seconds(const Worker& worker, int busy) const {
    const std::size_t task = task_of(worker.task);
    return worker.power.slow * worker.time_factor * work_.seconds(task, busy, shift(task));
  }
  double shift(std::size_t task) const {
    return options_.shifts.empty() ? 0 : options_.shifts[task];
  }

  Clock& clock_;
  const NodeWork& work_;
  const RankHosts& hosts_;
  Options options_;
  Callbacks callbacks_;
  std::vector<TaskEvents> events_;
  std::vector<std::uint32_t> waits_;   // by task of all steps
  std::vector<std::uint32_t> offers_;  // by task of all steps: exchanges it waits for
  std::vector<std::size_t> left_of_step_;
  std::vector<bool> submitted_;  // by step: its times are known
  std::vector<double> finished_;
  double submitting_until_ = 0;
  std::int64_t next_step_ = 0, steps_done_ = 0;  // to be submitted; ended
  std::vector<Worker> workers_;
  std::vector<Spread> spreads_;  // by pool
  Turns turns_;
  std::vector<std::vector<ReadyTask>> ready_;  // by pool
  std::vector<int> busy_;                      // by pool: workers that have a task
  std::vector<int> paced_by_;                  // by pool: `busy_` when its speeds were last set
  bool speeds_will_change_ = false;            // at this time, once all its events were seen
  std::vector<int> homes_;                     // by chunk
  std::vector<std::size_t> first_copy_;        // by buffer
  std::vector<BufferCopy> copies_;
  double bytes_fetched_ = 0;
  std::vector<double> joules_;                  // by pool
  std::map<int, std::deque<Message>> sending_;  // by route, of a pipeline; the first is on its way
  bool releasing_several_ = false;  // no task is assigned before all that become ready now have
};

}  // namespace regatta
