// What is read must end: a FIFO may have no writer, and a device need not end.
#pragma once

#include <filesystem>

namespace regatta {

// Throws InputError if something other than a regular file lies at `path`.
void require_regular_file(const std::filesystem::path& path);

}  // namespace regatta
