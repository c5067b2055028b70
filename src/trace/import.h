// Other programs' traces as records: StarPU's paje.trace, and the SQLite files of nvprof and Nsight
// Systems.
#pragma once

#include <filesystem>
#include <istream>
#include <string>

#include "trace/trace.h"

namespace regatta::trace {

// By what the file holds, not by its name. Throws InputError in one line.
Record import_trace(const std::filesystem::path& file);

// `name` is for errors.
Record import_paje(std::istream& in, const std::string& name);
Record import_profile(const std::filesystem::path& file);  // nvprof or Nsight Systems

}  // namespace regatta::trace
