// Which CPUs the threads of each worker's team run on.
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

}  // namespace regatta
