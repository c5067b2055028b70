#include "app/cpu_use.h"

#include <algorithm>
#include <cstdlib>

namespace regatta::app {

std::string cpu_line(int threads, const CpuLimits& limits, const std::string& asked,
                     const std::vector<std::string>& ignored) {
  const int usable = limits.usable();
  std::string text = "using " + std::to_string(std::min(threads, usable)) + " of " +
                     std::to_string(limits.machine) + " CPUs";
  std::vector<std::string> reasons;
  if (limits.affinity < limits.machine)
    reasons.push_back("the affinity mask allows " + std::to_string(limits.affinity));
  if (limits.quota > 0 && limits.quota < limits.affinity)
    reasons.push_back("the control group's quota allows " + std::to_string(limits.quota));
  if (threads < usable) reasons.push_back(asked);
  if (threads > usable)
    reasons.push_back(asked + " makes " + std::to_string(threads) + " threads share them");
  for (const std::string& variable : ignored)
    reasons.push_back(variable + " has no say (--workers has)");
  for (std::size_t i = 0; i < reasons.size(); ++i) text += (i == 0 ? ": " : ", ") + reasons[i];
  return text;
}

std::string worker_source(std::optional<int> workers_flag) {
  if (workers_flag) return "--workers " + std::to_string(*workers_flag);
  for (const char* name : {"STARPU_NCPU", "STARPU_NCPUS"})
    if (const char* value = std::getenv(name); value && std::atoi(value) > 0)
      return std::string(name) + "=" + value;
  return "";
}

}  // namespace regatta::app
