// Manual pages, made from what the commands declare and say with --help.
#pragma once

#include <string>
#include <string_view>

namespace regatta::app {

// The page of `command`, or of the whole program if it is empty, in man's own language (roff).
// Throws InputError for an unknown command.
std::string manual_page(std::string_view command);

}  // namespace regatta::app
