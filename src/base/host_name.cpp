#include "base/host_name.h"

#include <unistd.h>

#include <fstream>

namespace regatta {

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

std::string kernel_mark(const std::filesystem::path& proc) {
  std::ifstream file(proc / "sys/kernel/random/boot_id");
  std::string mark;
  return file >> mark ? mark : host_name();
}

}  // namespace regatta
