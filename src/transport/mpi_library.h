// The border between the program and the library that speaks MPI, which is opened at run time.
#pragma once

#include <string>

#include "transport/transport.h"

namespace regatta {

inline constexpr const char* mpi_library_name = "libregatta_mpi.so";
inline constexpr const char* mpi_library_entry = "regatta_open_mpi";

// Starts MPI; null and why not if it cannot. `library` is the opened library itself: SimGrid, which
// the program is linked with, has functions of MPI's names too, for programs that it simulates, so
// MPI's own are looked up in what the library brought along.
using OpenMpi = Transport*(void* library, std::string& trouble);

}  // namespace regatta
