// Which CPUs a run uses, and why not all: the first line that train prints.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "platform/limits.h"

namespace regatta::app {

// "using 2 of 16 CPUs: the affinity mask allows 4, the control group 2". `threads` compute; `asked`
// says what asked for so many, such as "--workers 2". `ignored`: OpenMP's variables that were set.
std::string cpu_line(int threads, const CpuLimits& limits, const std::string& asked,
                     const std::vector<std::string>& ignored);

// What says how many CPU workers a run has, if not the CPUs that the system allows: "--workers 2",
// "STARPU_NCPU=2" or nothing.
std::string worker_source(std::optional<int> workers_flag);

}  // namespace regatta::app
