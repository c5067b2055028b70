// Text as printf writes it.
#pragma once

#include <cstdio>
#include <string>

namespace regatta {

// Cut to 255 characters.
std::string formatted(const char* format, auto... values) {
  char text[256];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

}  // namespace regatta
