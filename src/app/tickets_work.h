// Working on a search: shared by `tickets work` and the commands that make one.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <string>

#include "tickets/jobs.h"

namespace regatta::app {

struct WorkFlags {
  std::optional<int> workers;       // CPUs of this worker
  std::string jobs = "auto";        // side by side: a number, or auto
  std::optional<std::string> data;  // where the data lies here
  bool again = false;               // failed jobs too
  std::optional<std::string> json_file;
};
void declare_work(CLI::App& app, WorkFlags& flags);

// Does jobs of the search until all are done, or until a signal. Returns the exit code; throws
// InputError if jobs failed for good.
int work_on(const std::filesystem::path& search, const WorkFlags& flags);

// Makes the folder of a search, or finds that it holds the same one, and works on it, unless
// `no_work`: then it says how others can. Returns the exit code.
int make_search(const std::filesystem::path& folder, const tickets::Search& search, bool no_work,
                const WorkFlags& flags);
void add_no_work_flag(CLI::App& app, bool& no_work);

// How long a search's jobs take depends on these, which `regatta train` finds out: it is asked with
// the flags of the search, and its complaints are passed on.
struct TrainFacts {
  std::int64_t samples_per_step = 0, steps_per_epoch = 0;
  Json recipe = {};
};
TrainFacts facts_of(const std::vector<std::string>& train);

// "0,500,2e" as steps, rising; throws InputError.
std::vector<std::int64_t> parse_resets(const std::string& text, std::int64_t steps_per_epoch);

// Flags of `regatta train` that every job of a search says itself are refused; throws InputError.
void refuse_own_flags(const std::vector<std::string>& extras);

// The program itself, to be run again.
std::filesystem::path this_program();

}  // namespace regatta::app
