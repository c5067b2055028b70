// Flags shared by the `regatta tickets` commands that train many runs from the same reset points
// (steps of the dense run whose weights the runs start from).
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "app/tickets_work.h"
#include "tickets/jobs.h"

namespace regatta::app {

struct RunsFlags {
  std::string model, data, out, resets = "0";
  int seeds = 1;
  std::uint64_t seed = 1;
  std::int64_t epochs = 1;
  WorkFlags work;
};

// Unknown flags are allowed: they are passed on to `regatta train`. `runs`: the word for the runs
// in help texts, as in "RUNS end where the dense run ends".
void declare_runs(CLI::App& app, RunsFlags& flags, const std::string& runs);

// A search with everything but its jobs: the flags of `regatta train`, `extras` among them, and the
// number of steps, the reset points and the seeds. Throws InputError where `regatta train` would.
tickets::Search search_without_jobs(const RunsFlags& flags, const std::vector<std::string>& extras);

}  // namespace regatta::app
