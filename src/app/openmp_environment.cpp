#include "app/openmp_environment.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace regatta::app {
namespace {

// Filled before any constructor has run, so it has none.
constinit std::array<const char*, 16> removed_first{};

// Runs before the constructors of all libraries: in one of those GCC's OpenMP reads its variables
// and binds the calling thread to a CPU.
void before_libraries(int /*count*/, char** /*arguments*/, char** environment) {
  remove_openmp_variables(environment, removed_first);
}
using Start = void (*)(int, char**, char**);
[[gnu::section(".preinit_array"), gnu::used]] Start first_to_run = before_libraries;

}  // namespace

void remove_openmp_variables(char** environment, std::span<const char*> removed) {
  std::size_t found = 0;
  char** kept = environment;
  for (char** each = environment; *each; ++each) {
    const std::string_view variable(*each);
    const bool openmp = variable.starts_with("OMP_") || variable.starts_with("GOMP_") ||
                        variable.starts_with("KMP_");
    if (!openmp)
      *kept++ = *each;
    else if (found < removed.size())
      removed[found++] = *each;
  }
  *kept = nullptr;
}

std::vector<std::string> removed_openmp_variables() {
  return {removed_first.begin(), std::ranges::find(removed_first, nullptr)};
}

}  // namespace regatta::app
