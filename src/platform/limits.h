// What the system lets this process use of the machine: CPUs and memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace regatta {

// Where the kernel tells of processes and control groups; tests have their own.
struct SystemRoots {
  std::filesystem::path proc = "/proc", cgroup = "/sys/fs/cgroup";
};

struct CpuLimits {
  int machine = 1;   // CPUs of the machine
  int affinity = 1;  // of them, those this process may run on
  int quota = 0;     // CPUs that its control groups grant it, rounded up; 0: no limit

  int usable() const;
};
CpuLimits cpu_limits(const SystemRoots& roots = {});

// The CPUs that the control groups of this process, versions 1 and 2, grant it; 0 when there is no
// limit.
int cgroup_cpus(const SystemRoots& roots = {});

struct MemoryLimit {
  std::string name;        // "ulimit -v", for messages
  std::int64_t bytes = 0;  // the limit
  std::int64_t left = 0;   // of it, not used yet, or used only for files that can be read again
  // Processes, of whatever machine, whose limits have the same text here share one limit. Empty:
  // the limit is of this process alone.
  std::string shared_as = {};
  bool counts_mapped = false;  // memory that is mapped counts, whether it is used or not
};
// All there are: of the machine, of every control group this process is in (version 1 or 2), and
// ulimit's on address space and data. Those of the calling shell's `ulimit -m` mean nothing to
// Linux.
std::vector<MemoryLimit> memory_limits(const SystemRoots& roots = {});

}  // namespace regatta
