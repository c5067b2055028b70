// platform/: machines as data, and what can be learned of the one we run on.
#pragma once

#include <string>

#include "base/host_name.h"  // IWYU pragma: export

namespace regatta {

// CPUs this process may really use: its affinity mask, capped by the cgroup's CPU quota.
int available_cpus();

// The processor's name as the kernel tells it, for run records.
std::string cpu_name();

}  // namespace regatta
