#include "base/json_depth.h"

namespace regatta {

bool nests_too_deep(std::string_view text) {
  constexpr int deepest = 100;
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size() && depth <= deepest; ++i) {
    const char c = text[i];
    if (quoted && c == '\\')
      ++i;  // the character after it stands for itself
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted && (c == '[' || c == '{'))
      ++depth;
    else if (!quoted && (c == ']' || c == '}'))
      --depth;
  }
  return depth > deepest;
}

}  // namespace regatta
