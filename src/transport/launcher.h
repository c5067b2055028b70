// Whether a launcher of MPI (mpirun, srun) started this process, and the way to MPI if so.
#pragma once

#include <memory>
#include <optional>

#include "transport/transport.h"

namespace regatta {

struct Launch {
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  // among the ranks on the same machine
};

// The environment variable ("NAME=value") by which a program that a rank starts is no rank itself.
inline constexpr const char* no_rank = "REGATTA_RANKS=0";

// As the launcher's environment variables tell (Open MPI's, PMI's, PMIx's with Slurm's); none
// without a launcher, for a run of a single process, or with REGATTA_RANKS=0.
std::optional<Launch> launch_environment();

// Opens MPI, from a library of its own that nothing else links: a program without a launcher needs
// no MPI. Throws InputError if the library is not there or does not start.
std::shared_ptr<Transport> open_mpi();

}  // namespace regatta
