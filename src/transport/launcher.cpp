#include "transport/launcher.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <string>

#include "base/error.h"
#include "transport/mpi_library.h"

namespace regatta {
namespace {

// The first of these variables that holds a number.
std::optional<int> number_of(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const char* value = std::getenv(name); value && *value >= '0' && *value <= '9')
      return std::atoi(value);
  return std::nullopt;
}

// Beside the program as it was built, and where it is installed.
void* open_library() {
  std::error_code ignored;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const std::filesystem::path folder = program.parent_path();
  std::string first_error;
  for (const std::filesystem::path& file :
       {folder / mpi_library_name, folder / ".." / REGATTA_PRIVATE_DIR / mpi_library_name,
        std::filesystem::path(mpi_library_name)}) {
    const bool by_path = file.has_parent_path();
    if (by_path && !std::filesystem::exists(file, ignored)) continue;
    // Open MPI opens parts of its own that look for its symbols among the global ones.
    if (void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL)) return library;
    if (first_error.empty() || by_path) first_error = ::dlerror();
  }
  throw InputError(
      "a launcher of MPI started this process, but MPI cannot be opened: " + first_error +
      "; install Open MPI's library (Debian: libopenmpi3), or start the "
      "program without a launcher");
}

}  // namespace

std::optional<Launch> launch_environment() {
  if (number_of({"REGATTA_RANKS"}) == 0) return std::nullopt;
  const std::optional<int> rank = number_of({"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"});
  if (!rank) return std::nullopt;
  const std::optional<int> size =
      number_of({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"});
  if (!size || *size < 2) return std::nullopt;
  Launch launch{.rank = *rank, .size = *size};
  launch.local_rank =
      number_of({"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}).value_or(0);
  launch.local_size =
      number_of({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_TASKS_PER_NODE"})
          .value_or(1);
  return launch;
}

std::shared_ptr<Transport> open_mpi() {
  void* library = open_library();
  const auto open = reinterpret_cast<OpenMpi*>(::dlsym(library, mpi_library_entry));
  if (!open) throw InputError(std::string(mpi_library_name) + " is of another version; reinstall");
  std::string trouble;
  std::shared_ptr<Transport> transport(open(library, trouble));
  if (!transport) throw InputError("MPI did not start: " + trouble);
  return transport;
}

}  // namespace regatta
