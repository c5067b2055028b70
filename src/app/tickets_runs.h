// Flags that commands which train many runs from shared reset points have in common, and the
// search's facts that follow from them.
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

// Flags that it does not know go to `regatta train`. `runs`: what starts from the reset points.
void declare_runs(CLI::App& app, RunsFlags& flags, const std::string& runs);

// Flags of training, with `extras`, its steps, reset points and seeds.
// Throws InputError where `regatta train` would.
tickets::Search search_without_jobs(const RunsFlags& flags, const std::vector<std::string>& extras);

}  // namespace regatta::app
