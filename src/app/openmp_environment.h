// OpenMP's variables have no say in this program: it decides itself how many threads it starts and
// on which CPUs they run. Those that modules of a cluster set would bind all of them to one CPU.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace regatta::app {

// Removes all variables that begin with OMP_, GOMP_ or KMP_ from an environment, which ends with a
// null pointer. The first of them are put into `removed`.
void remove_openmp_variables(char** environment, std::span<const char*> removed);

// The variables that were removed before the program started, as "NAME=VALUE".
std::vector<std::string> removed_openmp_variables();

}  // namespace regatta::app
