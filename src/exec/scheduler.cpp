#include "exec/scheduler.h"

#include <sched.h>
#include <starpu.h>
#include <starpu_scheduler.h>

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <thread>

#include "exec/submission.h"
#include "exec/worker_times.h"
#include "tasks/placement.h"

namespace regatta {
namespace {

// How long a worker that rests sleeps before it looks for a task again. If the others fall behind,
// it comes back late by no more than this.
constexpr std::chrono::microseconds nap(100);

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The ready tasks, one pool for CPU workers and one for GPUs. An idle worker asks the policy.
class ReadyList {
 public:
  explicit ReadyList(bool crowded) : crowded_(crowded) {}

  void push(starpu_task* task) {
    const auto* run = static_cast<const TaskRun*>(task->sched_data);
    starpu_push_task_end(task);
    if (run) return add(*run);
    const Lock lock(mutex_);
    strangers_.push_back(task);
    count_.fetch_add(1, std::memory_order_release);
    wake(task, -1);
  }

  void skip(const FixedPlace& place) {
    const Lock lock(mutex_);
    turns_.skip(place);
    call(place.worker);
  }

  starpu_task* pop(int worker) {
    worker_times().asked(worker);
    // Looked at without the lock: workers ask all the time while they have nothing to do.
    const bool nothing = count_.load(std::memory_order_acquire) == 0 ||
                         waits_[static_cast<std::size_t>(worker)].load(std::memory_order_acquire);
    if (nothing) {
      if (crowded_) ::sched_yield();
      return nullptr;
    }
    {
      const Lock lock(mutex_);
      bool rests = false;
      if (starpu_task* task = take(worker, rests)) {
        count_.fetch_sub(1, std::memory_order_relaxed);
        worker_times().chosen(worker);
        return task;
      }
      if (!rests) {
        waits_[static_cast<std::size_t>(worker)].store(true, std::memory_order_relaxed);
        return nullptr;
      }
    }
    std::this_thread::sleep_for(nap);
    return nullptr;
  }

 private:
  // Tasks that one kind of workers runs.
  struct Pool {
    std::vector<ReadyTask> ready;
    std::vector<starpu_task*> tasks;  // of `ready`, at the same places
  };

  // Held for less than a microsecond, so it is worth looking again before going to sleep over it.
  class Lock {
   public:
    explicit Lock(std::mutex& mutex) : mutex_(mutex) {
      for (int tries = 0; tries < 200; ++tries) {
        if (mutex_.try_lock()) return;
        __builtin_ia32_pause();
      }
      mutex_.lock();
    }
    ~Lock() { mutex_.unlock(); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    std::mutex& mutex_;
  };

  void add(const TaskRun& run) {
    const int home = run.last_worker ? run.last_worker->load(std::memory_order_relaxed) : -1;
    const Lock lock(mutex_);
    Pool& pool = pools_[run.starpu->cl->where == STARPU_CUDA];
    paced_ |= run.ready.fixed.pace != nullptr;
    pool.ready.push_back(run.ready);
    pool.ready.back().home = home;
    pool.tasks.push_back(run.starpu);
    count_.fetch_add(1, std::memory_order_release);
    if (const int own = run.ready.fixed.worker; own < 0)
      wake(run.starpu, home);
    else if (waits(own))
      call(own);
  }

  static bool may_run(int worker, starpu_task* task) {
    return starpu_worker_can_execute_task_first_impl(static_cast<unsigned>(worker), task,
                                                     nullptr) != 0;
  }

  // `rests` is set if the worker leaves all ready tasks to workers that need fewer joules.
  starpu_task* take(int worker, bool& rests) {
    for (auto each = strangers_.begin(); each != strangers_.end(); ++each)
      if (may_run(worker, *each)) {
        starpu_task* task = *each;
        strangers_.erase(each);
        return task;
      }
    Pool& pool = pools_[starpu_worker_get_type(worker) != STARPU_CPU_WORKER];
    const std::ptrdiff_t found = turns_.pick(pool.ready, worker, paced_ ? seconds_now() : 0);
    rests = found == Turns::rest;
    if (rests) wake_for_rest(pool);
    if (found < 0) return nullptr;
    const auto chosen = static_cast<std::size_t>(found);
    turns_.taken(pool.ready[chosen], worker);
    const bool own = pool.ready[chosen].fixed.worker >= 0;
    starpu_task* task = pool.tasks[chosen];
    pool.ready[chosen] = pool.ready.back();
    pool.ready.pop_back();
    pool.tasks[chosen] = pool.tasks.back();
    pool.tasks.pop_back();
    const auto& run = *static_cast<const TaskRun*>(task->sched_data);
    if (run.last_worker && !only_weight_gradients(*run.task))
      run.last_worker->store(worker, std::memory_order_relaxed);
    if (own) wake_for_rest(pool);
    return task;
  }

  bool waits(int worker) const {
    return waits_[static_cast<std::size_t>(worker)].load(std::memory_order_relaxed);
  }
  void call(int worker) {
    waits_[static_cast<std::size_t>(worker)].store(false, std::memory_order_release);
  }

  // Wakes a worker for the first ready task that is bound to no worker: the one that was woken for
  // it may have taken another task, or rest.
  void wake_for_rest(const Pool& pool) {
    for (std::size_t i = 0; i < pool.ready.size(); ++i)
      if (pool.ready[i].fixed.worker < 0) return wake(pool.tasks[i], pool.ready[i].home);
  }

  // Calls one worker for one unbound task: the one that has its data, else any that waits.
  void wake(starpu_task* task, int home) {
    if (home >= 0 && waits(home) && may_run(home, task)) return call(home);
    const int workers = static_cast<int>(starpu_worker_get_count());
    for (int worker = 0; worker < workers; ++worker)
      if (waits(worker) && may_run(worker, task)) return call(worker);
  }

  const bool crowded_;
  bool paced_ = false;  // a task of a plan with a pace has come: the clock is looked at
  std::mutex mutex_;
  std::atomic<std::size_t> count_ = 0;
  std::array<Pool, 2> pools_;  // ours: of CPU workers, of GPUs
  Turns turns_{STARPU_NMAXWORKERS};
  std::deque<starpu_task*> strangers_;  // StarPU's own, such as its reductions
  // Workers that looked and found nothing for them: they need not look before they are called.
  std::array<std::atomic<bool>, STARPU_NMAXWORKERS> waits_{};
};

#ifndef STARPU_NON_BLOCKING_DRIVERS
#error "regatta's scheduler is written for a StarPU whose workers never sleep"
#endif

bool crowded_machine = false;  // of the next list: StarPU passes nothing through

ReadyList& list_of(unsigned context) {
  return *static_cast<ReadyList*>(starpu_sched_ctx_get_policy_data(context));
}

}  // namespace

WorkerTimes& worker_times() {
  static WorkerTimes times;
  return times;
}

void skip_turn(const FixedPlace& place) {
  constexpr unsigned context = 0;  // StarPU's initial scheduling context
  if (place.turn > 0) list_of(context).skip(place);
}

starpu_sched_policy* scheduling_policy(bool crowded) {
  crowded_machine = crowded;
  static starpu_sched_policy policy = [] {
    starpu_sched_policy made{};
    made.init_sched = [](unsigned context) {
      starpu_sched_ctx_set_policy_data(context, new ReadyList(crowded_machine));
    };
    made.deinit_sched = [](unsigned context) { delete &list_of(context); };
    made.add_workers = [](unsigned context, int* workers, unsigned count) {
      for (unsigned i = 0; i < count; ++i)
        starpu_sched_ctx_worker_shares_tasks_lists(workers[i], static_cast<int>(context));
    };
    made.push_task = [](starpu_task* task) {
      list_of(task->sched_ctx).push(task);
      return 0;
    };
    made.pop_task = [](unsigned context) {
      return list_of(context).pop(static_cast<int>(starpu_worker_get_id_check()));
    };
    made.policy_name = own_scheduler;
    made.policy_description = "the policy of tasks/policy.h over the ready tasks";
    made.worker_type = STARPU_WORKER_LIST;
    return made;
  }();
  return &policy;
}

}  // namespace regatta
