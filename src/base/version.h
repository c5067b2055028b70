#pragma once

#include <string_view>

namespace regatta {

// The build defines it from the project's version.
inline constexpr std::string_view version = REGATTA_VERSION;

}  // namespace regatta
