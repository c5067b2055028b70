// A trained network that a subcommand of `tickets` works on.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <string>

#include "train/masking.h"
#include "train/run_folder.h"
#include "train/weights.h"

namespace regatta::app {

struct TicketSource {
  std::filesystem::path folder, checkpoint;
  RunRecord run;
  TensorFile file;  // the checkpoint's tensors; averages, where the run averages its parameters
  Weights weights;  // the same, by name
};

// `from` is a run's folder, whose newest whole checkpoint is taken, or a checkpoint in such a
// folder. Throws InputError that says what it is instead.
TicketSource ticket_source(const std::string& from);

// The flags that say which network, and by which mask it is pruned.
void declare_ticket(CLI::App& app, std::string& from, std::optional<std::string>& mask);

// The mask of `file`, if it is given, else the run's own. Throws InputError where there is none or
// it does not fit.
Mask mask_of(const TicketSource& source, const std::optional<std::string>& file);

}  // namespace regatta::app
