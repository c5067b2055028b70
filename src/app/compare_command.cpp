// `compare`: a recorded run beside its prediction.
#include <algorithm>
#include <iostream>

#include "app/command.h"
#include "app/compare_ranks.h"
#include "app/fleet_request.h"
#include "app/machine_bound.h"
#include "app/placement.h"
#include "app/simulate_here.h"
#include "base/files.h"
#include "platform/energy.h"
#include "report/compare.h"
#include "report/overlay.h"
#include "report/run_report.h"
#include "tasks/footprint.h"
#include "trace/store.h"
#include "train/run_folder.h"
#include "tune/stored_profile.h"

namespace regatta::app {
namespace {

namespace fs = std::filesystem;

// What was known before the run; what was not is played.
Planned planned_of(const TrainJob& job, const Json& run) {
  const PricedStep step = priced_step(job);
  const Played played = step.play();
  Planned planned;
  const auto predicted = run.find("predicted_step_s");
  planned.step_s = predicted != run.end() && predicted->is_number() ? predicted->get<double>()
                                                                    : played.step_seconds;
  planned.watts = cpus_of(job.plan) * assumed_watts_per_cpu;
  planned.energy_j = *planned.watts * *planned.step_s;
  double bytes = 0;
  for (const Footprint& each : footprints(step.blueprint(), {&step.list()}))
    bytes += static_cast<double>(each.bytes);
  planned.peak_bytes = bytes;
  for (const PlayedShares& worker : played.workers) planned.busy.push_back(worker.busy);
  planned.bound = step_bound_here(job);
  if (planned.bound) planned.least_work_s = least_work_s(job);
  return planned;
}

// A simulated run has a platform instead of this machine: what it left is laid beside the same plan
// simulated anew, with another seed if one is given.
sim::Simulated simulate_there(const TrainJob& job, const Json& run, std::int64_t steps,
                              std::uint64_t seed) {
  const Platform platform = platform_from_json(run.at("platform"), "run.json");
  Subject subject{job.graph, job.recipe, job.plan, job.network};
  FleetRequest request;
  if (run.contains("request")) request = request_from_json(run["request"]);
  const sim::PreparedFleet fleet =
      fleet_for(subject, platform, run.value("platform_folder", ""), request);
  return sim::simulate(fleet.fleet(), {.steps = steps, .seed = seed});
}

// A third of the simulated ones fill the pipeline and are not shown.
std::int64_t steps_beside(const trace::Record& measured) {
  const std::int64_t steps = trace::analyse(measured, trace::whole_window(measured)).steps;
  return std::clamp<std::int64_t>(3 * steps / 2, 12, 60);
}

// The policy of another scheduler is not ours to simulate: what it did is repeated.
std::string replay_strangers(TrainJob& job, const trace::Record& measured) {
  if (job.plan.scheduler == own_scheduler || job.plan.placement != Placement::dynamic) return {};
  const PricedStep asked = priced_step(job);
  job.plan.order = recorded_order(measured, asked.blueprint(), asked.list());
  job.plan.placement = Placement::fixed;
  return "the run was scheduled by StarPU's " + job.plan.scheduler +
         ": its measured placement was replayed in the simulation";
}

}  // namespace

int run_compare(std::span<const char* const> arguments) {
  CLI::App app(
      "Lays a recorded run beside its prediction: bound, planned, simulated and measured, and the "
      "tasks behind each difference.",
      "regatta compare");
  std::string run;
  std::optional<std::int64_t> steps;
  std::uint64_t seed = 1;
  std::optional<std::string> json_file;
  app.add_option("run", run, "the folder of a run that was recorded with --trace")
      ->required()
      ->type_name("RUN");
  app.add_option("--steps", steps,
                 "steps to simulate (default: as many as were recorded, and half)")
      ->type_name("N")
      ->check(whole_number(3, 1000));
  app.add_option("--seed", seed, "of the simulation")
      ->check(whole_number(0, UINT64_MAX))
      ->capture_default_str();
  add_json_flag(app, json_file);
  app.footer("Example:\n  regatta compare runs/mine\n  regatta compare runs/mine --json -");
  if (!parse(app, arguments)) return 0;
  if (json_file) require_writable(*json_file);

  const fs::path folder = run;
  const Json run_json = fs::exists(folder / "run.json") ? read_json(folder / "run.json") : Json();
  const bool on_platform = run_json.contains("platform");
  TrainJob job = on_platform ? job_of_run(run_json) : read_run_json(folder).job;
  const trace::Record measured = trace::read_store(trace::store_of(folder));
  job.profile = stored_profile();
  const std::int64_t count = steps.value_or(steps_beside(measured));
  Prediction made;
  std::string remark;
  if (on_platform) {
    made.simulated = simulate_there(job, run_json, count, seed);
    remark = "the run was simulated, and is laid beside the same plan simulated again";
  } else if (job.plan.nodes.size() > 1 && job.plan.stages.empty()) {
    made = predict_ranks(job, folder, measured, count, seed);
    remark = made.remark;
  } else {
    remark = replay_strangers(job, measured);
    made = {simulate_here(job, count, seed), planned_of(job, run_json)};
  }
  const sim::Simulated& simulated = made.simulated;
  Comparison comparison = compare(measured, simulated.record, made.planned);
  comparison.remark = remark;

  std::cout << table_of(comparison);
  trace::write_store(folder / simulated_store, simulated.record);
  if (!report_page.empty()) {
    write_report(folder, folder / report_name);
    std::cout << (folder / report_name).string() << " shows both timelines\n";
  }
  write_json_result(json_file, to_json(comparison));
  return 0;
}

}  // namespace regatta::app
