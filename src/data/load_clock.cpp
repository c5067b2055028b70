#include "data/load_clock.h"

#include <sys/resource.h>

#include <utility>

namespace regatta {
namespace {

using Clock = std::chrono::steady_clock;

struct ThreadTimes {
  LoadingTimes times;
  LoadClock* innermost = nullptr;
  Clock::time_point since;
  long blocks = 0;  // blocks_read() when it was last asked
};
thread_local ThreadTimes own;

// Blocks of 512 bytes that the kernel has read from disks for this thread, also for mapped files.
long blocks_read() {
  rusage usage{};
  return ::getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_inblock : 0;
}

}  // namespace

LoadClock::LoadClock(double LoadingTimes::*stage) : stage_(stage), outer_(own.innermost) {
  count();
  own.innermost = this;
}

LoadClock::~LoadClock() {
  count();
  own.innermost = outer_;
}

void LoadClock::count() {
  const Clock::time_point now = Clock::now();
  if (own.innermost)
    own.times.*own.innermost->stage_ += std::chrono::duration<double>(now - own.since).count();
  own.since = now;
}

LoadingTimes LoadClock::take() {
  LoadingTimes times = std::exchange(own.times, {});
  const long blocks = blocks_read();
  times.disk_bytes = 512.0 * static_cast<double>(blocks - std::exchange(own.blocks, blocks));
  return times;
}

}  // namespace regatta
