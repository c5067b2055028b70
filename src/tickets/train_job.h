// A job as a run of `regatta train` in a process of its own: its mask and first weights are made
// here, the rest is flags. A run that another worker left behind goes on from its last checkpoint.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tickets/shared_energy.h"
#include "tickets/worker.h"

namespace regatta::tickets {

struct TrainerOptions {
  std::filesystem::path program;    // regatta
  std::vector<std::string> flags;   // of `regatta train`, for every run of this worker
  std::optional<std::string> data;  // --data on this machine, if the data lies elsewhere here
  int cpus = 1;                     // how many CPUs the jobs side by side share
  int gpus = 0;                     // how many GPUs they share
};

class ProgramTrainer : public Trainer {
 public:
  explicit ProgramTrainer(TrainerOptions options);

  std::unique_ptr<RunningJob> start(const SearchFolder& folder, std::size_t job, int claim,
                                    int slots) override;
  void tidy(const SearchFolder& folder, std::size_t job, int claim) override;

 private:
  TrainerOptions options_;
  SharedEnergy energy_;
};

// Weights of the network drawn from `seed`, as a file that `train --init` takes.
TensorFile new_weights(const Graph& network, std::uint64_t seed);

// The mask of a job: that of its `pruned` job's weights, shuffled for JobKind::random; or its file.
// Nothing for dense jobs.
std::optional<Mask> mask_of(const SearchFolder& folder, const Job& job);

// Takes over the newest whole checkpoint of the claims before `claim`, with what the run wrote
// until then, into the claim's own run folder. False if there is none.
bool adopt_run(const std::filesystem::path& search, const std::string& id, int claim);

// What a finished run came to: the last epoch's losses and accuracies, and `weights`, the SHA-256
// of its last weights. Nothing if the run is not finished.
std::optional<Json> outcome_of(const std::filesystem::path& run, std::int64_t last_step);

}  // namespace regatta::tickets
