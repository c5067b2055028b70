// platform/: machines as data, and what can be learned of the one we run on.
#pragma once

#include <string>

namespace regatta {

// CPUs this process may really use: its affinity mask, capped by the cgroup's CPU quota.
int available_cpus();

// The processor's name and core count as the kernel tells them, for run records.
std::string cpu_name();
std::string host_name();

}  // namespace regatta
