#include "app/mpirun_defaults.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <utility>

namespace regatta::app {

void set_mpirun_defaults() {
  const std::array<std::pair<const char*, const char*>, 6> settings{{
      {"OMPI_MCA_hwloc_base_binding_policy", "none"},  // ranks share out the CPUs themselves
      {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
      // A machine that cannot be reached any more ends the run after some seconds.
      {"OMPI_MCA_oob_tcp_keepalive_time", "5"},
      {"OMPI_MCA_oob_tcp_keepalive_intvl", "1"},
      {"OMPI_MCA_oob_tcp_keepalive_probes", "5"},
      {"OMPI_MCA_orte_base_help_aggregate", "1"},
  }};
  for (const auto& [name, value] : settings) ::setenv(name, value, 0);
  if (::geteuid() != 0) return;
  ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
  ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
}

}  // namespace regatta::app
