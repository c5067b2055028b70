// Which CPUs threads run on: those of each worker's team, and the one that submits.
#pragma once

#include <span>
#include <vector>

namespace regatta {

// The CPUs of each worker: `team` of them in a row, none twice. Empty where there are too few for
// all: threads then go where the system puts them.
std::vector<std::vector<int>> team_cpus(std::span<const int> cpus, int workers, int team);

// The CPUs the calling thread may run on, by the system's numbers.
std::vector<int> allowed_cpus();
// Keeps the calling thread, and threads it starts, on these CPUs.
void stay_on(std::span<const int> cpus);
// The CPUs of `cpus` that are not `taken`.
std::vector<int> others_of(std::span<const int> cpus, std::span<const int> taken);
// Moves the calling thread off these CPUs, if it may run on others; it stays free to return. Two
// busy threads on one CPU would take turns of milliseconds until the system sees to it.
void leave_to_others(std::span<const int> cpus);

}  // namespace regatta
