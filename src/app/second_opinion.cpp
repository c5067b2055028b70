#include "app/second_opinion.h"

#include <algorithm>
#include <functional>

#include "app/fleet_request.h"
#include "base/error.h"
#include "base/json.h"
#include "platform/machine.h"
#include "report/text.h"
#include "sim/simulate.h"
#include "tune/plan_job.h"
#include "tune/stored_profile.h"
#include "tune/trials.h"

namespace regatta::app {
namespace {

namespace fs = std::filesystem;

// Smallest predicted gain, as a share of the step's time, that doctor reports.
constexpr double worth_advising = 0.05;

trace::Finding finding(const std::string& what, const std::string& fix, const std::string& flag,
                       double gain, double wall_s) {
  return {what, fix, flag, gain * wall_s, gain};
}

// --- a run on this machine -----------------------------------------------------------------------

bool ran_here(const Json& run) {
  const Json machine = run.value("machine", Json::object());
  return machine.value("cpu", "") == cpu_name() && machine.value("cpus", 0) == available_cpus();
}

std::string flags_of(const Granularity& granularity) {
  return "--segments " + granularity.segments + " --chunks " + std::to_string(granularity.chunks) +
         " --team " + std::to_string(granularity.team) + " --workers " +
         std::to_string(granularity.workers * granularity.team);
}

SecondOpinion of_run_here(const Json& run, double wall_s) {
  const TrainJob job = job_of_run(run);
  const auto groups = groups_of(job.plan);
  if (job.recipe.accumulate > 1 || !ran_here(run) ||
      std::ranges::any_of(groups, [](auto* group) { return group->kind != DeviceKind::cpu; }))
    return {};
  const std::shared_ptr<const Profile> profile = stored_profile();
  const CostsFor costs = costs_by(profile, job.recipe.data);
  Choice own{{candidate_of(job.graph, job.recipe, job.plan, costs)}, 1};
  if (own.best().known < known_enough) return {};
  apply_stored_trials(own, job.graph, job.recipe, *profile);
  SecondOpinion opinion{own.best().expected().count()};
  // What was asked for by name is not put in doubt.
  if (job.plan.deterministic || job.plan.placement != Placement::dynamic ||
      std::ranges::any_of(groups, [](auto* group) { return !group->slow.empty(); }))
    return opinion;
  PlanOptions options;
  options.workers = default_workers();
  options.cpus = available_cpus();
  options.layout = default_cpu_layout();
  options.reduction = job.plan.reduction;
  options.scheduler = job.plan.scheduler;
  Choice others = choose(job.graph, job.recipe, options, costs);
  apply_stored_trials(others, job.graph, job.recipe, *profile);
  rank_by_trials(others);
  const double mine = own.best().expected().count(), best = others.best().expected().count();
  const double gain = 1 - best / mine;
  if (gain < worth_advising) return opinion;
  opinion.findings.push_back(
      finding("By the profile of this machine another plan takes " + seconds_text(best) +
                  " a step where this one takes " + seconds_text(mine) + ".",
              "Let regatta train choose it (--granularity auto), or ask for it.",
              flags_of(others.best().granularity), gain, wall_s));
  return opinion;
}

// --- a simulated run on a platform ---------------------------------------------------------------

// Every way but the run's own to bring the ranks' gradients together, and shares by speed.
class OtherFleets {
 public:
  explicit OtherFleets(const Json& run)
      : platform_(platform_from_json(run.at("platform"), "run.json")),
        folder_(run.value("platform_folder", "")) {
    const TrainJob job = job_of_run(run);
    subject_ = {job.graph, job.recipe, std::nullopt, job.network};
    if (run.contains("request"))
      request_ = request_from_json(run["request"]);  // the plan follows from it
    else
      subject_.plan = job.plan;
  }

  std::vector<trace::Finding> findings(double wall_s) {
    if (subject_.plan && !subject_.plan->stages.empty()) return {};  // a pipeline sums no gradients
    const std::optional<double> own = step_of(subject_, request_);
    if (!own || ranks_ < 2) return {};
    std::vector<trace::Finding> found;
    const auto note = [&](std::optional<double> other, const std::string& flag) {
      const double gain = other ? 1 - *other / *own : 0;
      if (gain < worth_advising) return;
      found.push_back(finding("Simulated with " + flag + ", a step takes " + seconds_text(*other) +
                                  " instead of " + seconds_text(*own) + ".",
                              "Nodes, links and batch stay as they are.", flag, gain, wall_s));
    };
    const std::string update =
        subject_.plan ? std::string(node_update_name(subject_.plan->update)) : request_.update;
    for (const char* other : {"ring", "tree", "hierarchical", "server:cpu", "server:gpu"}) {
      if (other == update) continue;
      Subject subject = subject_;
      FleetRequest request = request_;
      request.update = other;
      if (subject.plan) subject.plan->update = node_update_named(other);
      note(step_of(subject, request), std::string("--update ") + other);
    }
    if (!subject_.plan && request_.shares == "equal") {
      FleetRequest request = request_;
      request.shares = "speed";
      note(step_of(subject_, request), "--shares speed");
    }
    std::ranges::stable_sort(found, std::greater{}, &trace::Finding::gain);
    if (found.size() > 1) found.resize(1);  // the others are of no use beside the best
    return found;
  }

 private:
  // Nothing where the platform cannot do it: no GPU to serve, no speeds to share by.
  std::optional<double> step_of(const Subject& subject, const FleetRequest& request) {
    try {
      const sim::PreparedFleet fleet = fleet_for(subject, platform_, folder_, request);
      ranks_ = fleet.fleet().ranks.size();
      // Three steps, so that one overlaps with its neighbours; of a large fleet one tells enough.
      return sim::simulate(fleet.fleet(), {.steps = ranks_ > 64 ? 1 : 3}).step_s.front();
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  Platform platform_;
  fs::path folder_;
  Subject subject_;
  FleetRequest request_;
  std::size_t ranks_ = 0;
};

}  // namespace

SecondOpinion second_opinion(const fs::path& folder, double wall_s) try {
  if (!fs::exists(folder / "run.json")) return {};
  const Json run = read_json(folder / "run.json");
  if (run.contains("platform")) return {std::nullopt, OtherFleets(run).findings(wall_s)};
  return of_run_here(run, wall_s);
} catch (const std::exception&) {
  return {};  // a run.json that cannot be read takes nothing from what the trace tells
}

}  // namespace regatta::app
