// A prediction and how sure it is.
#pragma once

namespace regatta {

// A number of seconds with its 95% interval.
struct Estimate {
  double seconds = 0, low = 0, high = 0;

  // Errors go together: what slows one operator slows its neighbours.
  Estimate& operator+=(const Estimate& other) {
    seconds += other.seconds;
    low += other.low;
    high += other.high;
    return *this;
  }
};

}  // namespace regatta
