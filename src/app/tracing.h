// --trace of a training run: a recorder beside it and a store in its folder.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "platform/disturbance.h"
#include "platform/energy.h"
#include "trace/recorder.h"
#include "train/job.h"
#include "train/loop.h"
#include "train/ranks.h"
#include "transport/clocks.h"

namespace regatta::app {

struct TraceFlags {
  std::optional<std::string> trace;  // how deep: tasks or ops
  std::optional<std::string> steps;  // "A:B"
};
void add_trace_flags(CLI::App& app, TraceFlags& flags);

struct StepRange {
  std::int64_t first = 1, last = 1;
};
// "3:9" or "3"; throws InputError that names the flag.
StepRange parse_steps(const std::string& flag, const std::string& text);

// Twenty steps after ten of warm-up; of a run too short for that, its second half.
StepRange default_steps(std::int64_t steps_done, std::int64_t last_step);

// Steps and depth of --trace as text, to compare between ranks.
std::string text_of(const TraceFlags& flags);

// Nothing happens without --trace.
class Tracing {
 public:
  Tracing(const TraceFlags& flags, const std::filesystem::path& folder, Executor& executor,
          const TrainJob& job, std::int64_t steps_done, std::int64_t last_step);

  // Measures the offsets of the ranks' clocks. Called by all ranks together, before training and
  // again after their records are complete.
  void match_clocks(Ranks& ranks);
  // Measures the links between the ranks. Called by all ranks together, before training.
  void measure_links(Ranks& ranks);

  void on_step(const StepRecord& record);
  void on_epoch(const EpochRecord& record);
  // Writes the store and its analysis. Returns a line for the user, or nothing. With several ranks
  // all call it, and the first rank's store gets the records of all. `ranks` is null for a process
  // alone.
  std::string finish(Ranks* ranks);

 private:
  void note_counters();
  void close_store();
  void gather_stores(Ranks& ranks);

  std::filesystem::path file_;
  Executor& executor_;
  std::vector<std::string> nodes_;  // names of the plan's nodes, of all ranks
  // By rank: offsets measured before and after training. Empty but on the first rank.
  std::vector<ClockOffset> clocks_before_, clocks_after_;
  std::shared_ptr<trace::Recorder> recorder_;
  std::optional<EnergyMeter> energy_;
  std::optional<DisturbanceMeter> others_;
  EnergyMeter::Clock::time_point energy_read_;
  std::vector<std::int64_t> unpaid_;  // steps whose joules are not read yet
  std::string missing_;               // ranks whose records could not be gathered
};

}  // namespace regatta::app
