#include "platform/distance.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <thread>

#include "platform/machine.h"

namespace regatta {
namespace {

using Clock = std::chrono::steady_clock;

// Nearer by so much is another place; less is chance.
constexpr double apart = 2;
// A core that another process works on too is slower by this factor.
constexpr double shared = 1.25;
// Cores of one die are nearer; if they are not at first, they are given a moment to become so.
constexpr double suspicious = 1e-7, moment = 1;

// With more CPUs some are always apart or shared, and a pair of them does not tell.
constexpr int few_cpus = 4;

bool stay_on(int cpu) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CPU_SET(static_cast<std::size_t>(cpu), &mask);
  return ::sched_setaffinity(0, sizeof mask, &mask) == 0;
}

// The first two that this process may use; false if there is only one.
bool two_cpus(int& first, int& second) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
  first = second = -1;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(static_cast<std::size_t>(cpu), &allowed)) continue;
    if (first < 0)
      first = cpu;
    else if (second < 0)
      second = cpu;
  }
  return second >= 0;
}

// Keeps a core's arithmetic busy all the time: as many chains as it takes.
double reckon() {
  double chains[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < 50'000; ++i)
    for (double& chain : chains) chain = chain * 0.999 + 0.001;
  volatile double sink = 0;
  for (const double chain : chains) sink = sink + chain;
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

double pair_seconds() {
  int first = -1, second = -1;
  if (!two_cpus(first, second)) return 0;
  constexpr int rounds = 5;
  std::atomic<int> there = 0;
  double shortest[2] = {1, 1};
  const auto run = [&](int cpu, double& mine) {
    stay_on(cpu);
    for (int round = 0; round < rounds; ++round) {
      ++there;
      while (there.load() < 2 * (round + 1)) {
      }
      mine = std::min(mine, reckon());
    }
  };
  std::thread one(run, first, std::ref(shortest[0])), other(run, second, std::ref(shortest[1]));
  one.join();
  other.join();
  return std::max(shortest[0], shortest[1]);
}

double line_seconds() {
  int first = -1, second = -1;
  if (!two_cpus(first, second)) return 0;

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

bool wait_until_undisturbed(double most_seconds) {
  if (available_cpus() > few_cpus) return true;
  static std::mutex mutex;
  static double nearest = 1, fastest = 1;
  const std::lock_guard lock(mutex);
  const Clock::time_point begin = Clock::now();
  const auto waited = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  double line = 0, pair = 0;
  const auto look = [&] {
    pair = pair_seconds();
    fastest = std::min(fastest, pair);
    line = line_seconds();
    // On one core they would be nearer than they ever are when they are of use.
    if (pair <= shared * fastest) nearest = std::min(nearest, line);
  };
  const bool first = nearest == 1;
  look();
  while (first && line > suspicious && waited() < moment) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    look();
  }
  while (line > apart * nearest || pair > shared * fastest) {
    if (waited() >= most_seconds) {
      // What lasts is how this machine is now.
      if (most_seconds > 0 && line > apart * nearest) nearest *= apart;
      if (most_seconds > 0 && pair > shared * fastest) fastest *= shared;
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    look();
  }
  return true;
}

}  // namespace regatta
