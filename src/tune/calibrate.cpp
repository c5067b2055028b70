#include "tune/calibrate.h"

#include <algorithm>
#include <iterator>

#include "graph/op.h"
#include "plan/segments.h"
#include "platform/distance.h"
#include "platform/machine.h"
#include "tune/measure_runtime.h"
#include "tune/measure_work.h"

namespace regatta {
namespace {

using Clock = std::chrono::steady_clock;

bool meets(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node& node) { return regatta::meets(node); });
}

PlanOptions plan_with(int workers) {
  return {.workers = workers, .cpus = available_cpus(), .layout = default_cpu_layout()};
}

std::vector<Measurement> on_cpus(const TrainJob& job, const CalibrationOptions& options) {
  const std::int64_t pieces = granules_of(job.graph, job.recipe.batch);
  const auto most_chunks = [&](int workers) { return std::min<std::int64_t>(workers, pieces); };
  const bool in_turn = options.in_turn && pieces >= 2 * options.workers;
  std::vector<Measurement> measurements;
  const auto add = [&](int workers, int team, std::int64_t chunks) -> Measurement& {
    const bool alone = workers < options.workers;
    Measurement& each = measurements.emplace_back(
        Measurement{.plan = plan_with(workers),
                    .whole = options.whole_chunks,
                    .half = !in_turn || alone || team > 1 || chunks > workers,
                    .most = alone ? options.most_alone : INT64_MAX});
    each.plan.team = team;
    each.plan.chunks = {chunks};
    each.plan.segments = "step";
    return each;
  };
  if (most_chunks(options.workers) > 1) add(options.workers, 1, most_chunks(options.workers));
  add(1, 1, 1);
  for (const int team : options.teams)
    if (team > 1 && team <= options.workers)
      add(options.workers, team, most_chunks(options.workers / team));
  // At meeting points a cut batch has other work than a whole one, such as merging sums.
  const bool cut = meets(job.graph) && job.recipe.batch > 1;
  if (cut) add(1, 1, 2).helps_others = true;
  for (const int team : options.teams)
    if (cut && options.teams_of_nodes && team > 1 && options.workers / team == 1)
      add(options.workers, team, 2);
  if (in_turn && !(cut && options.workers == 1)) {
    Measurement& each = add(options.workers, 1, 2 * options.workers);
    each.of = Measurement::Of::whole_chunks;
    each.helps_others = true;
  }
  // In several segments values are read from colder memory, so costs by block differ.
  if (segments_named(job.graph, "block").size() > 1) {
    Measurement& each = add(options.workers, 1, most_chunks(options.workers));
    each.plan.segments = "block";
    each.of = Measurement::Of::segments;
    each.helps_others = true;
  }
  return measurements;
}

std::vector<Measurement> on_gpu(const TrainJob& job, const CalibrationOptions& options) {
  std::vector<Measurement> measurements;
  PlanOptions plan = plan_with(options.workers);
  plan.gpu_layout = options.gpu.gpu_layout;
  plan.segments = options.gpu.segments;
  plan.recompute = options.gpu.recompute;
  plan.steps_in_flight = 1;  // one set of buffers, so that graphs are captured at once
  plan.devices = {DeviceKind::cuda};
  if (options.uses(DeviceKind::cuda)) {
    plan.chunks = options.gpu.chunks;
    measurements.push_back({plan});
  }
  const std::int64_t pieces = granules_of(job.graph, job.recipe.batch);
  if (options.shared && pieces > 1) {
    plan.devices = {DeviceKind::cpu, DeviceKind::cuda};
    // A chunk for each core; of a small batch the half.
    const std::int64_t granule = granule_of(job.graph);
    const std::int64_t chunks = std::min<std::int64_t>(cpus_to_compute(plan), pieces / 2);
    plan.chunks = {chunks};
    plan.shares = {chunks * granule, job.recipe.batch - chunks * granule};
    measurements.push_back({plan});
  }
  return measurements;
}

}  // namespace

bool CalibrationOptions::uses(DeviceKind kind) const {
  return std::ranges::find(devices, kind) != devices.end();
}

CalibrationOptions quick_calibration(const TrainJob& job, int workers,
                                     const std::vector<int>& more_teams) {
  CalibrationOptions options{.workers = workers, .in_turn = false};
  // Fewer samples than workers: only teams can keep them all busy. Where chunks meet, a team that
  // takes the batch whole never waits.
  const bool few = granules_of(job.graph, job.recipe.batch) < workers;
  if (few || meets(job.graph))
    for (int team = workers; team >= (few ? 2 : std::max(2, workers / 2)); team /= 2)
      options.teams.push_back(team);
  for (const int team : more_teams)
    if (std::ranges::find(options.teams, team) == options.teams.end())
      options.teams.push_back(team);
  return options;
}

std::vector<Observation> calibrate(const TrainJob& job, const CalibrationOptions& options) {
  std::vector<Observation> all;
  const auto take = [&](const auto& measure) {
    std::ranges::move(measure_undisturbed(measure), std::back_inserter(all));
  };
  const Clock::time_point begin = Clock::now();
  if (options.runtime) take([&] { return measure_runtime(options.workers); });
  std::vector<Measurement> measurements;
  if (options.uses(DeviceKind::cpu)) measurements = on_cpus(job, options);
  std::ranges::move(on_gpu(job, options), std::back_inserter(measurements));
  // Time that one measurement does not use goes to the next ones. Each gets `least` even if those
  // before it took longer than planned.
  const Seconds least = options.budget / static_cast<double>(2 * measurements.size());
  for (std::size_t i = 0; i < measurements.size(); ++i) {
    const Measurement& each = measurements[i];
    const Seconds spent = Clock::now() - begin;
    if (each.helps_others && !options.whole_chunks && spent > 2 * options.budget) continue;
    if (options.fits && !options.fits(make_plan(job.graph, job.recipe, each.plan))) continue;
    const Seconds time =
        std::max((options.budget - spent) / static_cast<double>(measurements.size() - i), least);
    take([&] { return measure_work(job, each, options.enough, time); });
  }
  return all;
}

}  // namespace regatta
