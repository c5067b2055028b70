#include "tune/calibrate.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

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

constexpr std::string_view whole_step = "step", by_blocks = "block";

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
  return measure(cell, Clock::now() + std::chrono::milliseconds(200));
}

std::vector<Observation> measure_runtime(const CalibrationOptions& options) {
  std::vector<Observation> all =
      on_small(fuse(chains()), options, "op", [](CalibrationCell& cell, Clock::time_point until) {
        return cell.measure_submission(until);
      });
  const std::vector<Observation> starts = on_small(
      fuse(meetings()), options, options.workers > 1 ? "step" : "op",
      [](CalibrationCell& cell, Clock::time_point until) { return cell.measure_starts(until); });
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

}  // namespace

std::vector<Observation> calibrate(const Graph& graph, const Recipe& recipe,
                                   const std::shared_ptr<const Dataset>& data,
                                   const CalibrationOptions& options) {
  std::vector<Observation> all;
  const auto take = [&](const std::vector<Observation>& seen) {
    all.insert(all.end(), seen.begin(), seen.end());
  };
  const Clock::time_point begin = Clock::now();
  if (options.runtime) take(measure_undisturbed([&] { return measure_runtime(options); }));

  struct Kind {
    int workers, team;
    std::int64_t chunks;
    std::string_view segments = whole_step;
    bool in_turn = false;  // two chunks for each worker
  };
  std::vector<Kind> kinds;
  const std::int64_t pieces = granules_of(graph, recipe.batch);
  const auto most_chunks = [&](int workers) { return std::min<std::int64_t>(workers, pieces); };
  const auto uses = [&](DeviceKind kind) {
    return std::ranges::find(options.devices, kind) != options.devices.end();
  };
  constexpr Seconds time_for_turns{3};
  const bool in_turn = options.in_turn && pieces >= 2 * options.workers &&
                       (options.whole_chunks || options.budget >= time_for_turns);
  if (uses(DeviceKind::cpu)) {
    if (most_chunks(options.workers) > 1)
      kinds.push_back({options.workers, 1, most_chunks(options.workers)});
    kinds.push_back({1, 1, 1});
    for (const int team : options.teams) {
      const int workers = options.workers / team;
      if (team < 2 || workers < 1) continue;
      kinds.push_back({options.workers, team, most_chunks(workers)});
    }
    // Work at meeting points is another when it is cut.
    const bool cut = meets(graph) && recipe.batch > 1;
    if (cut) kinds.push_back({1, 1, 2});
    if (in_turn && !(cut && options.workers == 1))
      kinds.push_back({options.workers, 1, 2 * options.workers, whole_step, true});
    // What segments leave to each other lies in colder memory.
    if (segments_named(graph, std::string(by_blocks)).size() > 1)
      kinds.push_back({options.workers, 1, most_chunks(options.workers), by_blocks});
  }
  const bool gpu = uses(DeviceKind::cuda);
  const bool shared = options.shared && pieces > 1;
  std::size_t left = kinds.size() + (gpu ? 1 : 0) + (shared ? 1 : 0);
  // What one of them leaves of its share goes to the others; each has some, however slow the start.
  const Seconds least = options.budget / static_cast<double>(2 * left);
  const auto share = [&] {
    const Seconds rest = options.budget - (Clock::now() - begin);
    return std::max(rest / static_cast<double>(left--), least);
  };
  Recipe on_cpu = recipe;
  if (on_cpu.precision == Precision::tf32) on_cpu.precision = Precision::fp32;
  for (const Kind& kind : kinds) {
    // What is only of use beside the others waits for the next time.
    const bool beside =
        (kind.workers == 1 && kind.chunks > 1) || kind.in_turn || kind.segments != whole_step;
    if (beside && !options.whole_chunks && Clock::now() - begin > 2 * options.budget) continue;
    PlanOptions plan{.workers = kind.workers,
                     .cpus = available_cpus(),
                     .team = kind.team,
                     .layout = options.layout};
    plan.chunks = {kind.chunks};
    plan.segments = std::string(kind.segments);
    // What a team gains is worth knowing at the size at hand.
    constexpr Seconds time_for_teams{0.3};
    const Seconds time = kind.team > 1 ? std::max(share(), time_for_teams) : share();
    const bool alone = kind.workers < options.workers;
    CalibrationCell::Sizes sizes{
        .whole = options.whole_chunks,
        .half = !in_turn || alone || kind.team > 1 || kind.chunks > kind.workers};
    if (alone) sizes.most = options.most_alone;
    const auto measure = [&](CalibrationCell& cell) {
      if (kind.segments != whole_step) return cell.measure_segments(time);
      return kind.in_turn ? cell.measure_whole(time) : cell.measure(time);
    };
    take(measure_undisturbed([&] {
      CalibrationCell cell(graph, on_cpu, data, options, plan, sizes);
      return measure(cell);
    }));
  }
  if (gpu) {
    PlanOptions plan{.workers = options.workers, .layout = options.layout};
    plan.devices = {DeviceKind::cuda};
    plan.steps_in_flight = 1;  // one set of buffers, so that graphs are captured at once
    plan.gpu_layout = options.gpu_layout;
    take(CalibrationCell(graph, recipe, data, options, plan, {}).measure(share()));
  }
  if (shared) {
    PlanOptions plan{
        .workers = options.workers, .cpus = available_cpus(), .layout = options.layout};
    plan.devices = {DeviceKind::cpu, DeviceKind::cuda};
    plan.steps_in_flight = 1;
    plan.gpu_layout = options.gpu_layout;
    // A chunk for each core; of a small batch the half.
    const std::int64_t granule = granule_of(graph);
    const std::int64_t chunks = std::min<std::int64_t>(cpus_to_compute(plan), pieces / 2);
    plan.chunks = {chunks};
    plan.shares = {chunks * granule, recipe.batch - chunks * granule};
    take(CalibrationCell(graph, recipe, data, options, plan, {}).measure(share()));
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
