// Starting programs by mpirun on this machine, for tests.
#pragma once

#include <string>
#include <vector>

#include "base/program.h"

namespace regatta {

// Empty, or why tests over MPI cannot run here.
std::string mpi_missing();

// Runs so many processes of a program, side by side on whatever CPUs there are.
ProgramResult mpirun(int ranks, const std::vector<std::string>& program);

}  // namespace regatta
