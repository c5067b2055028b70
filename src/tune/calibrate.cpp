#include "tune/calibrate.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "exec/recording.h"
#include "graph/op.h"
#include "ops/builder.h"
#include "plan/segments.h"
#include "platform/distance.h"
#include "platform/machine.h"
#include "train/job.h"
#include "tune/calibration_cell.h"

namespace regatta {
namespace {

using Clock = std::chrono::steady_clock;

bool meets(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node& node) { return regatta::meets(node); });
}

// A network so small that it is all runtime.
Graph chains() {
  NetBuilder net("chains", {1, 8, 8});
  NodeId x = net.conv("conv", net.input(), {.channels = 4, .kernel = 3});
  x = net.max_pool(net.relu(x), {.kernel = 2});
  return std::move(net).finish(net.dense("dense", x, 4));
}
// One whose chunks meet, with tasks of some tens of microseconds: shorter ones would get into each
// other's way in the runtime, as those of real networks do not.
Graph meetings() {
  NetBuilder net("meetings", {1, 16, 16});
  NodeId x = net.input();
  for (const char* name : {"1", "2", "3", "4"}) {
    x = net.conv(std::string("conv") + name, x, {.channels = 16, .kernel = 3, .padding = 1});
    x = net.relu(net.batch_norm(std::string("norm") + name, x));
  }
  return std::move(net).finish(net.dense("dense", x, 4));
}

// Steps on one sample for each worker.
template <class Measure>
std::vector<Observation> on_small(const Graph& graph, const CalibrationOptions& options,
                                  const std::string& segments, const Measure& measure) {
  Recipe recipe;
  recipe.model = graph.name();
  recipe.input = graph.node(graph.input()).shape;
  recipe.classes = graph.classes();
  recipe.normalisation = {1.0f / 255, std::vector(1, 0.0f), std::vector(1, 1.0f)};
  recipe.batch = options.workers;
  PlanOptions plan{.workers = options.workers, .layout = options.layout};
  plan.chunks = {options.workers};
  plan.segments = segments;
  CalibrationCell cell(graph, recipe, nullptr, options, plan, {});
  return measure(cell);
}

std::vector<Observation> measure_runtime(const CalibrationOptions& options) {
  std::vector<Observation> all = on_small(fuse(chains()), options, "op", [](CalibrationCell& cell) {
    return cell.measure_submission();
  });
  const std::vector<Observation> starts =
      on_small(fuse(meetings()), options, options.workers > 1 ? "step" : "op",
               [](CalibrationCell& cell) { return cell.measure_starts(); });
  all.insert(all.end(), starts.begin(), starts.end());
  // More than any cache holds.
  std::vector<char> from(std::size_t{32} << 20, 1), to(from.size());
  for (int i = 0; i < 5; ++i) {
    const Seconds begin = thread_time();
    std::memcpy(to.data(), from.data(), from.size());
    all.push_back({"runtime byte", 1, 1,
                   Seconds(thread_time() - begin).count() / static_cast<double>(from.size())});
  }
  return all;
}

// A plan that is run for calibration, and which of its costs are measured.
struct Measurement {
  using Of = CalibrationCell::Of;

  PlanOptions plan;
  CalibrationCell::Sizes sizes = {};
  Of of = Of::all_sizes;
  bool helps_others = false;  // only useful in addition to other measurements
};

std::vector<Measurement> on_cpus(const Graph& graph, const Recipe& recipe,
                                 const CalibrationOptions& options) {
  const std::int64_t pieces = granules_of(graph, recipe.batch);
  const auto most_chunks = [&](int workers) { return std::min<std::int64_t>(workers, pieces); };
  const bool in_turn = options.in_turn && pieces >= 2 * options.workers;
  std::vector<Measurement> measurements;
  const auto add = [&](int workers, int team, std::int64_t chunks) -> Measurement& {
    const bool alone = workers < options.workers;
    Measurement& each = measurements.emplace_back();
    each.plan = {
        .workers = workers, .cpus = available_cpus(), .team = team, .layout = options.layout};
    each.plan.chunks = {chunks};
    each.plan.segments = "step";
    each.sizes = {.whole = options.whole_chunks,
                  .half = !in_turn || alone || team > 1 || chunks > workers,
                  .most = alone ? options.most_alone : INT64_MAX};
    return each;
  };
  if (most_chunks(options.workers) > 1) add(options.workers, 1, most_chunks(options.workers));
  add(1, 1, 1);
  for (const int team : options.teams)
    if (team > 1 && team <= options.workers)
      add(options.workers, team, most_chunks(options.workers / team));
  // At meeting points a cut batch has other work than a whole one, such as merging sums.
  const bool cut = meets(graph) && recipe.batch > 1;
  if (cut) add(1, 1, 2).helps_others = true;
  if (in_turn && !(cut && options.workers == 1)) {
    Measurement& each = add(options.workers, 1, 2 * options.workers);
    each.of = Measurement::Of::whole_chunks;
    each.helps_others = true;
  }
  // In several segments values are read from colder memory, so costs by block differ.
  if (segments_named(graph, "block").size() > 1) {
    Measurement& each = add(options.workers, 1, most_chunks(options.workers));
    each.plan.segments = "block";
    each.of = Measurement::Of::segments;
    each.helps_others = true;
  }
  return measurements;
}

std::vector<Measurement> on_gpu(const Graph& graph, const Recipe& recipe,
                                const CalibrationOptions& options) {
  std::vector<Measurement> measurements;
  PlanOptions plan{.workers = options.workers, .cpus = available_cpus(), .layout = options.layout};
  plan.gpu_layout = options.gpu_layout;
  plan.steps_in_flight = 1;  // one set of buffers, so that graphs are captured at once
  plan.devices = {DeviceKind::cuda};
  if (options.uses(DeviceKind::cuda)) measurements.push_back({plan});
  const std::int64_t pieces = granules_of(graph, recipe.batch);
  if (options.shared && pieces > 1) {
    plan.devices = {DeviceKind::cpu, DeviceKind::cuda};
    // A chunk for each core; of a small batch the half.
    const std::int64_t granule = granule_of(graph);
    const std::int64_t chunks = std::min<std::int64_t>(cpus_to_compute(plan), pieces / 2);
    plan.chunks = {chunks};
    plan.shares = {chunks * granule, recipe.batch - chunks * granule};
    measurements.push_back({plan});
  }
  return measurements;
}

}  // namespace

bool CalibrationOptions::uses(DeviceKind kind) const {
  return std::ranges::find(devices, kind) != devices.end();
}

std::vector<Observation> calibrate(const Graph& graph, const Recipe& recipe,
                                   const std::shared_ptr<const Dataset>& data,
                                   const CalibrationOptions& options) {
  std::vector<Observation> all;
  const auto take = [&](const std::vector<Observation>& seen) {
    all.insert(all.end(), seen.begin(), seen.end());
  };
  const Clock::time_point begin = Clock::now();
  if (options.runtime) take(measure_undisturbed([&] { return measure_runtime(options); }));
  std::vector<Measurement> measurements;
  if (options.uses(DeviceKind::cpu)) measurements = on_cpus(graph, recipe, options);
  const std::size_t cpu_plans = measurements.size();
  std::ranges::move(on_gpu(graph, recipe, options), std::back_inserter(measurements));
  Recipe cpu_recipe = recipe;
  if (cpu_recipe.precision == Precision::tf32) cpu_recipe.precision = Precision::fp32;
  // Time that one measurement does not use goes to the next ones. Each gets `least` even if those
  // before it took longer than planned.
  const Seconds least = options.budget / static_cast<double>(2 * measurements.size());
  for (std::size_t i = 0; i < measurements.size(); ++i) {
    const Measurement& each = measurements[i];
    const Seconds spent = Clock::now() - begin;
    if (each.helps_others && !options.whole_chunks && spent > 2 * options.budget) continue;
    const Seconds time =
        std::max((options.budget - spent) / static_cast<double>(measurements.size() - i), least);
    take(measure_undisturbed([&] {
      CalibrationCell cell(graph, i < cpu_plans ? cpu_recipe : recipe, data, options, each.plan,
                           each.sizes);
      return cell.measure(each.of, time);
    }));
  }
  return all;
}

std::vector<Observation> calibrate_quickly(const Graph& graph, const Recipe& recipe,
                                           const std::shared_ptr<const Dataset>& data, int workers,
                                           Seconds budget, const std::vector<int>& more_teams) {
  CalibrationOptions options;
  options.workers = workers;
  options.layout = default_cpu_layout();
  options.budget = budget;
  options.in_turn = false;
  // Fewer samples than workers: only teams can keep them all busy. Where chunks meet, a team that
  // takes the batch whole never waits.
  const bool few = granules_of(graph, recipe.batch) < workers;
  if (few || meets(graph))
    for (int team = workers; team >= (few ? 2 : std::max(2, workers / 2)); team /= 2)
      options.teams.push_back(team);
  for (const int team : more_teams)
    if (std::ranges::find(options.teams, team) == options.teams.end())
      options.teams.push_back(team);
  return calibrate(graph, recipe, data, options);
}

}  // namespace regatta
