// The name of the machine that this process runs on.
#pragma once

#include <filesystem>
#include <string>

namespace regatta {

std::string host_name();  // "unknown" if the kernel does not tell

// The number that the kernel drew when it started, as `proc` tells it, or else the host's name.
// Containers may have one host name on several machines, or several on one.
std::string kernel_mark(const std::filesystem::path& proc = "/proc");

}  // namespace regatta
