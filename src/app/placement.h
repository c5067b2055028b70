// Where tasks run: plans from files, placements and recorded schedules.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/command.h"
#include "plan/plan_file.h"
#include "trace/trace.h"
#include "train/job.h"

namespace regatta::app {

struct PlacementFlags {
  std::optional<std::string> plan, platform, placement, replay;
  std::vector<std::string> slow;

  bool from_file() const { return plan || replay; }
};
void add_placement_flags(CLI::App& app, PlacementFlags& flags);
// Only those for workers of this machine: --placement and --slow.
void add_worker_flags(CLI::App& app, PlacementFlags& flags);

// --backward whole|split; without it the plan's maker decides.
void add_backward_flag(CLI::App& app, std::optional<std::string>& backward);
void add_recompute_flag(CLI::App& app, std::optional<std::string>& recompute);

// A machine's mark for plans that are made on it, and whether a plan is for this one. Throws
// InputError with the reason.
std::string machine_fingerprint();
void require_this_machine(const Plan& plan, const std::string& platform_name,
                          const std::optional<std::string>& platform_file);
// For a plan that several ranks are to follow, whose platform is no single machine: it must be the
// one that --platform names, if it names any.
void require_platform(const Plan& plan, const std::string& platform_name,
                      const std::optional<std::string>& platform_file);

// The job of a plan file or of a recorded run, without its data; the latter with the order in which
// its tasks ran in a typical step.
TrainJob job_of_plan(const PlanFile& file);
TrainJob job_of_replay(const std::filesystem::path& run);

// The order of a typical step of a record of this list. Throws InputError.
std::vector<std::vector<std::uint32_t>> recorded_order(const trace::Record& record,
                                                       const Blueprint& blueprint,
                                                       const TaskList& list);

// Every key in which they differ: "batch is 32, the plan's 64". Empty if they are the same.
std::string recipe_differences(const Recipe& asked, const Recipe& planned);

}  // namespace regatta::app
