#pragma once

#include <string>
#include <string_view>

namespace regatta {

// `text` as one word of a shell command that is printed for the user to paste: in quotes where it
// has a character that a shell would not take as it is.
std::string shell_word(std::string_view text);

}  // namespace regatta
