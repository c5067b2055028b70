#include "platform/machine.h"

#include <fstream>

#include "platform/limits.h"

namespace regatta {

int available_cpus() { return cpu_limits().usable(); }

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  std::string line;
  while (std::getline(info, line))
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

}  // namespace regatta
