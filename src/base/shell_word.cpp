#include "base/shell_word.h"

namespace regatta {

std::string shell_word(std::string_view text) {
  const bool plain = !text.empty() && text.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789-_./:,@%+=") == std::string_view::npos;
  if (plain) return std::string(text);
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'')
      quoted += "'\\''";  // ends the quotes, and begins them again after the one of the text
    else
      quoted += c;
  }
  return quoted + "'";
}

}  // namespace regatta
