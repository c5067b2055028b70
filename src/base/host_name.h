// The name of the machine that this process runs on.
#pragma once

#include <string>

namespace regatta {

std::string host_name();  // "unknown" if the kernel does not tell

}  // namespace regatta
