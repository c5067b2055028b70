// A trained network that a subcommand of `tickets` works on.
#pragma once

#include <filesystem>
#include <string>

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

}  // namespace regatta::app
