// How workers spend their time, counted at no cost worth naming: in kernels, in the runtime around
// them, or, what is left, without work.
#pragma once

#include <array>
#include <atomic>
#include <chrono>

namespace regatta {

class WorkerTimes {
 public:
  using Clock = std::chrono::steady_clock;

  struct Totals {
    std::chrono::nanoseconds kernels{0};
    // From a task's being chosen to its kernels, and from their end to the worker's asking for
    // more. Known under our own scheduler only.
    std::chrono::nanoseconds runtime{0};
  };

  // Called by worker `id` itself.
  void asked(int id) {
    Worker& worker = of(id);
    if (worker.ended == Clock::time_point{}) return;
    add(worker.runtime, Clock::now() - worker.ended);
    worker.ended = {};
  }
  void chosen(int id) { of(id).chosen = Clock::now(); }
  void begins(int id) {
    Worker& worker = of(id);
    worker.began = Clock::now();
    if (worker.chosen != Clock::time_point{}) add(worker.runtime, worker.began - worker.chosen);
  }
  void ends(int id) {
    Worker& worker = of(id);
    const auto now = Clock::now();
    add(worker.kernels, now - worker.began);
    if (worker.chosen != Clock::time_point{}) worker.ended = now;
    worker.chosen = {};
  }

  // Sums over all workers since the start. Any thread may ask.
  Totals totals() const {
    Totals sum;
    for (const Worker& worker : workers_) {
      sum.kernels += std::chrono::nanoseconds(worker.kernels.load(std::memory_order_relaxed));
      sum.runtime += std::chrono::nanoseconds(worker.runtime.load(std::memory_order_relaxed));
    }
    return sum;
  }
  void clear() {
    for (Worker& worker : workers_) {
      worker.kernels = worker.runtime = 0;
      worker.chosen = worker.ended = {};
    }
  }

 private:
  static constexpr std::size_t most = 512;
  struct alignas(64) Worker {
    std::atomic<std::int64_t> kernels = 0, runtime = 0;  // nanoseconds
    Clock::time_point chosen{}, began{}, ended{};
  };
  Worker& of(int id) { return workers_[static_cast<std::size_t>(id) % most]; }
  // Each counter has one writer.
  static void add(std::atomic<std::int64_t>& counter, Clock::duration more) {
    counter.store(counter.load(std::memory_order_relaxed) +
                      std::chrono::duration_cast<std::chrono::nanoseconds>(more).count(),
                  std::memory_order_relaxed);
  }

  std::array<Worker, most> workers_;
};

// There is one executor at a time, and StarPU hands its scheduler nothing of ours.
WorkerTimes& worker_times();

}  // namespace regatta
