// Workers made unequal, for experiments on a machine whose cores are alike, and shares of the batch
// that make up for it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/command.h"
#include "train/job.h"

namespace regatta::app {

// --slow; see slow_workers.
void add_slow_flag(CLI::App& app, std::vector<std::string>& flags);

// Of "1=2" and such: by CPU worker, how many times as long its tasks take; empty if none is given.
std::vector<double> slow_workers(const std::vector<std::string>& flags, int workers);

// Writes it into the plan. Throws InputError if there are no such workers.
void slow_down(Plan& plan, const std::vector<std::string>& flags);

// Whether --shares asks for share_out.
inline bool shares_of_workers(const std::string& shares) {
  return shares == "equal" || shares == "speed";
}

// Otherwise it is samples of each device, after commas. Throws InputError.
std::vector<std::int64_t> samples_of(const std::string& shares);

// One for each worker, or as many as the batch can be cut into.
std::int64_t chunks_at_most(const JobOptions& options, int workers);

// Whether shares are tried out, and for how long.
struct ShareTrials {
  // By the seconds that a step is predicted to take; none: predictions alone decide.
  std::function<Seconds(double step_seconds)> budget = {};
  bool keep = true;  // what was seen, in this machine's profile
};

// As commands do it, for a run of so many steps or for any: not where a rule of thumb is wanted,
// and not where the machine's mood must have no say.
ShareTrials share_trials(const TrainJob& job, const std::string& granularity,
                         std::optional<std::int64_t> steps = {});

// A chunk for each CPU worker of its own: all alike, or such that, however slow each worker is, all
// arrive together where they meet: by the job's costs, and then by trials.
void share_out(TrainJob& job, const std::string& shares, int workers,
               const std::vector<std::string>& slow, const ShareTrials& trials = {});

}  // namespace regatta::app
