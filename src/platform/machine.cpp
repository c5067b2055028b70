#include "platform/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

namespace regatta {
namespace {

// Whole CPUs granted by the control group (version 2, then 1); 0 when there is no limit.
int cgroup_cpus() {
  if (std::ifstream file("/sys/fs/cgroup/cpu.max"); file) {
    std::string quota;
    double period = 0;
    if (file >> quota >> period && quota != "max" && period > 0)
      return std::max(1, static_cast<int>(std::ceil(std::stod(quota) / period)));
  }
  std::ifstream quota_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream period_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double quota = 0;
  double period = 0;
  if (quota_file >> quota && period_file >> period && quota > 0 && period > 0)
    return std::max(1, static_cast<int>(std::ceil(quota / period)));
  return 0;
}

}  // namespace

int available_cpus() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  int cpus = 1;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) cpus = std::max(1, CPU_COUNT(&mask));
  const int granted = cgroup_cpus();
  return granted > 0 ? std::min(cpus, granted) : cpus;
}

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  std::string line;
  while (std::getline(info, line))
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

}  // namespace regatta
