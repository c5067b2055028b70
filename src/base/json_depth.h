// A guard against JSON made to exhaust the stack.
#pragma once

#include <string_view>

namespace regatta {

// True if lists and objects of `text` lie deeper in each other than any of our files has them. To
// be asked before parsing: what walks the result calls itself.
bool nests_too_deep(std::string_view text);

}  // namespace regatta
