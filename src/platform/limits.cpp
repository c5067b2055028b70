#include "platform/limits.h"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

#include "base/host_name.h"

namespace regatta {
namespace fs = std::filesystem;
namespace {

// The folders of the control groups that limit this process in `controller`, its own and those
// around it, of version 1 and 2. Some may not exist: a container does not see the groups around it.
std::vector<fs::path> control_groups(const SystemRoots& roots, const std::string& controller) {
  std::vector<fs::path> folders;
  std::ifstream file(roots.proc / "self" / "cgroup");
  for (std::string line; std::getline(file, line);) {  // NUMBER:CONTROLLERS:PATH
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool second_version = controllers == ",,";
    if (!second_version && controllers.find("," + controller + ",") == std::string::npos) continue;
    const fs::path root = second_version ? roots.cgroup : roots.cgroup / controller;
    std::string path = line.substr(second + 1);
    // A group outside of what this process sees.
    if (path.find("..") != std::string::npos) path = "/";
    for (fs::path each = fs::path(path).relative_path(); !each.empty(); each = each.parent_path())
      folders.push_back(root / each);
    folders.push_back(root);
  }
  return folders;
}

template <class Number>
std::optional<Number> number_in(const fs::path& path) {
  std::ifstream file(path);
  Number number{};
  if (file >> number) return number;
  return std::nullopt;
}

// "NAME VALUE" or "NAME: VALUE kB" on a line of its own; 0 if there is none.
std::int64_t field_of(const fs::path& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word, unit;
    std::int64_t value = 0;
    if (!(words >> word >> value) || (word != name && word != name + ":")) continue;
    return words >> unit && unit == "kB" ? value * 1024 : value;
  }
  return 0;
}

// A soft limit of "/proc/self/limits"; nothing if it is unlimited.
std::optional<std::int64_t> soft_limit(const SystemRoots& roots, const std::string& name) {
  std::ifstream file(roots.proc / "self" / "limits");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name)) continue;
    std::istringstream words(line.substr(name.size()));
    std::int64_t value = 0;
    if (words >> value) return value;
  }
  return std::nullopt;
}

// The same text for all processes that mean the same file. A container may call any group "/".
std::string identity_of(const fs::path& path, const std::string& kernel) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) return kernel + " " + path.string();
  return kernel + " " + std::to_string(about.st_dev) + ":" + std::to_string(about.st_ino);
}

// What a group may use and does. File pages are given up when memory is short, and so is what the
// kernel can make again, such as its cache of names (version 1 does not tell how much that is).
std::optional<MemoryLimit> memory_of(const fs::path& group, const std::string& kernel) {
  const auto limit_of = [&](const char* limit, const char* used,
                            const std::string& prefix) -> std::optional<MemoryLimit> {
    const auto most = number_in<std::int64_t>(group / limit);
    const auto now = number_in<std::int64_t>(group / used);
    if (!most || !now) return std::nullopt;
    std::int64_t spare = 0;
    for (const char* each : {"active_file", "inactive_file", "slab_reclaimable"})
      spare += field_of(group / "memory.stat", prefix + each);
    return MemoryLimit{"the control group's " + std::string(limit), *most,
                       std::max<std::int64_t>(0, *most - std::max<std::int64_t>(0, *now - spare)),
                       identity_of(group, kernel)};
  };
  if (auto found = limit_of("memory.max", "memory.current", "")) return found;
  return limit_of("memory.limit_in_bytes", "memory.usage_in_bytes", "total_");
}

}  // namespace

int cgroup_cpus(const SystemRoots& roots) {
  double least = std::numeric_limits<double>::infinity();
  const auto consider = [&](double quota, double period) {
    if (quota > 0 && period > 0) least = std::min(least, quota / period);
  };
  for (const fs::path& group : control_groups(roots, "cpu")) {
    double quota = 0, period = 0;
    if (std::ifstream file(group / "cpu.max"); file >> quota >> period) consider(quota, period);
    consider(number_in<double>(group / "cpu.cfs_quota_us").value_or(0),
             number_in<double>(group / "cpu.cfs_period_us").value_or(0));
  }
  return std::isinf(least) ? 0 : std::max(1, static_cast<int>(std::ceil(least)));
}

int CpuLimits::usable() const { return quota > 0 ? std::min(affinity, quota) : affinity; }

CpuLimits cpu_limits(const SystemRoots& roots) {
  CpuLimits limits;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) == 0)
    limits.affinity = std::max(1, CPU_COUNT(&mask));
  limits.machine = std::max(limits.affinity, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
  limits.quota = cgroup_cpus(roots);
  return limits;
}

std::vector<MemoryLimit> memory_limits(const SystemRoots& roots) {
  std::vector<MemoryLimit> limits;
  const fs::path machine = roots.proc / "meminfo";
  const std::string kernel = kernel_mark(roots.proc);
  const std::int64_t total = field_of(machine, "MemTotal");
  if (const std::int64_t left = field_of(machine, "MemAvailable"); total > 0 && left > 0)
    limits.push_back({"the machine", total, left, kernel});
  for (const fs::path& group : control_groups(roots, "memory"))
    // Control groups of version 1 express "unlimited" as a number above the machine's memory.
    if (const auto found = memory_of(group, kernel); found && (total == 0 || found->bytes < total))
      limits.push_back(*found);
  const auto add_soft = [&](const char* flag, const char* name, const char* used) {
    const auto limit = soft_limit(roots, name);
    if (!limit) return;
    const std::int64_t now = field_of(roots.proc / "self" / "status", used);
    limits.push_back({flag, *limit, std::max<std::int64_t>(0, *limit - now), "", true});
  };
  add_soft("ulimit -v", "Max address space", "VmSize");
  add_soft("ulimit -d", "Max data size", "VmData");
  return limits;
}

}  // namespace regatta
