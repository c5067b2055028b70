// What shells complete after `regatta`: commands, flags, and values where a flag names all it
// takes.
#pragma once

#include <string>
#include <string_view>

namespace regatta::app {

// A script for `shell`, bash or zsh, made from the flags that the commands declare. Throws
// InputError for another shell.
std::string completion_script(std::string_view shell);

}  // namespace regatta::app
