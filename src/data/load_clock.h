// Where the time of loading goes, measured on the thread that loads. A clock costs two readings of
// the time: a few hundred nanoseconds for a sample with several.
#pragma once

#include <chrono>

#include "regatta/epoch.h"

namespace regatta {

class LoadClock {
 public:
  // While it lives, this thread's time counts for the stage, but for what inner clocks count.
  explicit LoadClock(double LoadingTimes::*stage);
  ~LoadClock();
  LoadClock(const LoadClock&) = delete;
  LoadClock& operator=(const LoadClock&) = delete;

  // Returns what this thread has counted since the last call, with the bytes read from disk.
  static LoadingTimes take();

 private:
  void count();

  double LoadingTimes::*stage_;
  LoadClock* outer_;
};

}  // namespace regatta
