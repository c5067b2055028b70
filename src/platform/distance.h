// How far CPUs are from each other, and whether each has a core to itself. A virtual machine's may
// be moved apart for seconds, so that what workers hand each other takes several times as long, or
// together on one core, so that both are half as fast; nothing measured meanwhile is typical.
#pragma once

namespace regatta {

// For a cache line to get from one CPU of this process to another; 0 if it has only one. Takes a
// few milliseconds.
double line_seconds();

// For two of them to reckon something at once; the shortest of a few times. Takes a millisecond.
double pair_seconds();

// Waits, at most so long, until CPUs are about as near, and as fast side by side, as this process
// has seen them. False if they still are not; who waited in vain expects less from then on. No
// other thread of the process should be busy. Does not wait where there are more than four: some
// are always apart or shared there, and measurements are repeated instead.
bool wait_until_undisturbed(double most_seconds);

// Calls `measure` once CPUs are near and fast; again, `tries` times at most, if they did not stay
// so from its begin to its end. `patience`: seconds to wait before each call.
template <class Measure>
auto measure_undisturbed(const Measure& measure, double patience = 2, int tries = 3) {
  for (;;) {
    const bool before = wait_until_undisturbed(patience);
    auto measured = measure();
    if (--tries == 0 || (before && wait_until_undisturbed(0))) return measured;
  }
}

}  // namespace regatta
