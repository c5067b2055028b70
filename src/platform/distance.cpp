#include "platform/distance.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

namespace regatta {
namespace {

using Clock = std::chrono::steady_clock;

// Nearer by so much is another place; less is chance.
constexpr double apart = 2;
// Cores of one die are nearer; if they are not at first, they are given a moment to become so.
constexpr double suspicious = 1e-7, moment = 1;

bool stay_on(int cpu) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CPU_SET(static_cast<std::size_t>(cpu), &mask);
  return ::sched_setaffinity(0, sizeof mask, &mask) == 0;
}

}  // namespace

double line_seconds() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 0;
  int first = -1, second = -1;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(static_cast<std::size_t>(cpu), &allowed)) continue;
    if (first < 0)
      first = cpu;
    else if (second < 0)
      second = cpu;
  }
  if (second < 0) return 0;

  constexpr int rounds = 20, turns = 500;
  alignas(64) std::atomic<int> line = 0;
  std::thread other([&line, second] {
    stay_on(second);
    for (int i = 0; i < rounds * turns; ++i) {
      while (line.load(std::memory_order_acquire) != 2 * i + 1) {
      }
      line.store(2 * i + 2, std::memory_order_release);
    }
  });
  // The shortest round: those in which either thread was interrupted say nothing.
  double shortest = 1;
  std::thread one([&] {
    stay_on(first);
    for (int round = 0, i = 0; round < rounds; ++round) {
      const Clock::time_point begin = Clock::now();
      for (int turn = 0; turn < turns; ++turn, ++i) {
        line.store(2 * i + 1, std::memory_order_release);
        while (line.load(std::memory_order_acquire) != 2 * i + 2) {
        }
      }
      const std::chrono::duration<double> took = Clock::now() - begin;
      shortest = std::min(shortest, took.count() / (2 * turns));
    }
  });
  one.join();
  other.join();
  return shortest;
}

bool wait_until_near(double most_seconds) {
  static std::mutex mutex;
  static double nearest = 1;
  const std::lock_guard lock(mutex);
  const Clock::time_point begin = Clock::now();
  const auto waited = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  const auto look = [] {
    const double now = line_seconds();
    nearest = std::min(nearest, now);
    return now;
  };
  const bool first = nearest == 1;
  while (first && look() > suspicious && waited() < moment)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  while (look() > apart * nearest) {
    if (waited() >= most_seconds) {
      // What lasts is how this machine is now.
      if (most_seconds > 0) nearest *= apart;
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return true;
}

}  // namespace regatta
