#include "base/precision.h"

#include <array>
#include <cstddef>
#include <string>

#include "base/error.h"

namespace regatta {
namespace {
constexpr std::array<std::string_view, 3> names{"fp32", "tf32", "bf16"};
}

std::string_view precision_name(Precision precision) {
  return names[static_cast<std::size_t>(precision)];
}

Precision precision_named(std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<Precision>(i);
  throw InputError("precision '" + std::string(name) + "' is unknown: use fp32, tf32 or bf16");
}

}  // namespace regatta
