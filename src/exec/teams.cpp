#include "exec/teams.h"

#include <sched.h>

#include <algorithm>

namespace regatta {

std::vector<std::vector<int>> team_cpus(std::span<const int> cpus, int workers, int team) {
  const auto each = static_cast<std::size_t>(team);
  std::vector<std::vector<int>> teams;
  if (cpus.size() / each < static_cast<std::size_t>(workers)) return teams;
  for (std::size_t i = 0; i < static_cast<std::size_t>(workers); ++i) {
    const std::span<const int> own = cpus.subspan(i * each, each);
    teams.emplace_back(own.begin(), own.end());
  }
  return teams;
}

std::vector<int> allowed_cpus() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &mask)) cpus.push_back(cpu);
  return cpus;
}

void stay_on(std::span<const int> cpus) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int cpu : cpus) CPU_SET(static_cast<std::size_t>(cpu), &mask);
  // Refused, it costs speed alone.
  (void)sched_setaffinity(0, sizeof mask, &mask);
}

std::vector<int> others_of(std::span<const int> cpus, std::span<const int> taken) {
  std::vector<int> others;
  for (const int cpu : cpus)
    if (std::ranges::find(taken, cpu) == taken.end()) others.push_back(cpu);
  return others;
}

void leave_to_others(std::span<const int> cpus) {
  const std::vector<int> allowed = allowed_cpus();
  const std::vector<int> others = others_of(allowed, cpus);
  if (others.empty() || others.size() == allowed.size()) return;
  stay_on(others);
  stay_on(allowed);
}

}  // namespace regatta
