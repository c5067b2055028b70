// How far CPUs are from each other. A virtual machine's may be moved apart for seconds: what
// workers hand each other then takes several times as long, and nothing measured meanwhile is
// typical.
#pragma once

namespace regatta {

// For a cache line to get from one CPU of this process to another; 0 if it has only one. Takes a
// few milliseconds.
double line_seconds();

// Waits, at most so long, until CPUs are about as near as this process has seen them. False if they
// still are not; who waited in vain expects less from then on. No other thread of the process
// should be busy.
bool wait_until_near(double most_seconds);

// Calls `measure` while CPUs are near; again, a few times at most, if they were not near from its
// begin to its end.
template <class Measure>
auto while_near(const Measure& measure, double patience = 2, int tries = 3) {
  for (;;) {
    const bool before = wait_until_near(patience);
    auto measured = measure();
    if (--tries == 0 || (before && wait_until_near(0))) return measured;
  }
}

}  // namespace regatta
