// The border between the program and the library that speaks MPI, which is opened at run time.
#pragma once

#include <string>

#include "transport/transport.h"

namespace regatta {

inline constexpr const char* mpi_library_name = "libregatta_mpi.so";
inline constexpr const char* mpi_library_entry = "regatta_open_mpi";

// Starts MPI; null and why not if it cannot.
using OpenMpi = Transport*(std::string& trouble);

}  // namespace regatta
