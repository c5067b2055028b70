// Flags that take several things after commas.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "models/models.h"

namespace regatta::app {

inline std::vector<std::string> listed(const std::string& text) {
  std::vector<std::string> pieces;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    pieces.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return pieces;
}

// Names of the zoo. A wrong one is told before minutes go into measuring the others.
inline std::vector<std::string> listed_models(const std::string& flag, const std::string& text) {
  std::vector<std::string> names = listed(text);
  if (names.empty())
    throw InputError(flag + ": name models, after commas; regatta models lists them");
  for (const std::string& name : names) build_model(name);
  return names;
}

}  // namespace regatta::app
