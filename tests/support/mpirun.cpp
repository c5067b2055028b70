#include "support/mpirun.h"

#include <filesystem>

#include "base/error.h"
#include "support/places.h"
#include "transport/launcher.h"
#include "transport/mpi_library.h"

namespace regatta {

std::string mpi_missing() {
  if (launch_environment()) return "this process is itself a rank";
  const std::filesystem::path beside = regatta_program().parent_path();
  if (!std::filesystem::exists(beside / mpi_library_name) &&
      !std::filesystem::exists(beside / "../lib/regatta" / mpi_library_name))
    return "the program was built without MPI";
  try {
    if (run_program({"mpirun", "--version"}).status == 0) return "";
  } catch (const InputError&) {
  }
  return "there is no mpirun here";
}

ProgramResult mpirun(int ranks, const std::vector<std::string>& program) {
  std::vector<std::string> arguments{
      "mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--timeout", "300",
      "-n",     std::to_string(ranks)};
  arguments.insert(arguments.end(), program.begin(), program.end());
  return run_program(arguments);
}

}  // namespace regatta
