#include "tune/choose_devices.h"

#include <algorithm>
#include <bit>
#include <initializer_list>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/formatted.h"
#include "base/json_reader.h"
#include "graph/graph.h"

namespace regatta {
namespace {

class DeviceSearch {
 public:
  DeviceSearch(const Graph& graph, const Recipe& recipe, const PlanOptions& options,
               const CostsFor& costs, const PlanFits& fits)
      : graph_(graph), recipe_(recipe), options_(options), costs_(costs), fits_(fits) {}

  Choice run() {
    const bool both_named = options_.devices.size() > 1;
    const auto require = [&] { require_sharing(graph_, recipe_.batch, options_); };
    if (both_named) require();
    if (options_.devices_open || !both_named) gpu_alone();
    if (options_.devices_open) cores_alone();
    if (both_named || (options_.devices_open && why_not(require).empty())) shared();
    choice_.devices_open = options_.devices_open;
    // Guesses are not compared with measurements. Where the GPU's costs are guesses, it is the
    // better guess, however well those of the cores are known.
    const auto known = [](const Candidate& each) { return each.known >= mostly_measured; };
    const auto gpu_alone_computes = [](const Candidate& each) {
      return kind_of(each.granularity) == PlanKind::gpu;
    };
    std::vector<Candidate>& all = choice_.candidates;
    const auto rest =
        std::ranges::stable_partition(all, [&](const Candidate& each) { return fits_(each.plan); });
    if (rest.begin() != all.begin()) all.erase(rest.begin(), rest.end());
    const bool gpu_can = std::ranges::any_of(all, gpu_alone_computes);
    choice_.by_costs = std::ranges::any_of(all, [&](const Candidate& each) {
      return known(each) && (!gpu_can || gpu_alone_computes(each));
    });
    std::erase_if(all, [&](const Candidate& each) {
      return choice_.by_costs ? !known(each) : gpu_can && !gpu_alone_computes(each);
    });
    std::ranges::stable_sort(all, {}, &Candidate::predicted);
    return std::move(choice_);
  }

 private:
  PlanOptions options_for(std::vector<DeviceKind> devices) const {
    PlanOptions options = options_;
    options.devices = std::move(devices);
    return options;
  }

  void add(Candidate candidate) {
    ++choice_.compared;
    choice_.candidates.push_back(std::move(candidate));
  }

  void gpu_alone() {
    PlanOptions options = options_for({DeviceKind::cuda});
    for (const Layout layout : gpu_layouts(options_, recipe_.precision)) {
      options.gpu_layout = layout;
      add(candidate_of(graph_, recipe_, make_plan(graph_, recipe_, options), costs_));
    }
  }

  void cores_alone() {
    Choice found = choose(graph_, recipe_, options_for({DeviceKind::cpu}), costs_, fits_);
    choice_.compared += found.compared;
    // The best of each kind: of those, trials choose.
    std::set<PlanKind> taken;
    for (Candidate& each : found.candidates)
      if (taken.insert(kind_of(each.granularity)).second)
        choice_.candidates.push_back(std::move(each));
  }

  void shared() {
    const std::int64_t granule = granule_of(graph_);
    const std::int64_t pieces = granules_of(graph_, recipe_.batch);
    PlanOptions options = options_for({DeviceKind::cpu, DeviceKind::cuda});
    const int cpus = cpus_to_compute(options);
    // Threads of a team: 1 is a chunk for each core.
    std::vector<int> teams{options_.team.value_or(1)};
    if (!options_.team) std::ranges::copy(teams_beside_gpu(options), std::back_inserter(teams));
    for (const Layout layout : gpu_layouts(options_, recipe_.precision))
      for (const int team : teams) {
        options.gpu_layout = layout;
        options.team = team;
        options.workers = cpus / team * team;
        share_best(options, granule, pieces);
      }
  }

  // The time of a step first falls and then rises as cores get more samples: the least lies between
  // two thirds of which neither is much slower. Cores get a sample, or granule, for each of the
  // chunks that the user asks for.
  void share_best(const PlanOptions& options, std::int64_t granule, std::int64_t pieces) {
    std::map<std::int64_t, Candidate> tried;  // by granules of the CPU's share
    const auto seconds = [&](std::int64_t share) {
      if (!tried.contains(share)) tried.emplace(share, with(options, share * granule));
      return tried.at(share).predicted;
    };
    std::int64_t low = options.chunks ? options.chunks->front() : 1, high = pieces - 1;
    while (high - low > 2) {
      const std::int64_t third = std::max<std::int64_t>((high - low) / 3, 1);
      if (seconds(low + third) <= seconds(high - third))
        high -= third;
      else
        low += third;
    }
    for (std::int64_t share = low; share <= high; ++share) seconds(share);
    std::vector<const Candidate*> fastest_first;
    for (const auto& [share, candidate] : tried) fastest_first.push_back(&candidate);
    std::ranges::stable_sort(fastest_first, {}, &Candidate::predicted);
    // Whether a plan fits takes longer to find out than how fast it is.
    const auto best = std::ranges::find_if(
        fastest_first, [&](const Candidate* each) { return fits_(each->plan); });
    choice_.compared += tried.size() - 1;
    add(best == fastest_first.end() ? *fastest_first.front() : **best);
  }

  Candidate with(PlanOptions options, std::int64_t cpu_share) const {
    options.shares = {cpu_share, recipe_.batch - cpu_share};
    if (!options.chunks)
      options.chunks = {
          std::min<std::int64_t>(options.workers / *options.team, granules_of(graph_, cpu_share))};
    return candidate_of(graph_, recipe_, make_plan(graph_, recipe_, options), costs_);
  }

  const Graph& graph_;
  const Recipe& recipe_;
  const PlanOptions& options_;
  const CostsFor& costs_;
  const PlanFits& fits_;
  Choice choice_;
};

// The fastest of these kinds; null if there is none.
const Candidate* best_of(const Choice& choice, std::initializer_list<PlanKind> kinds) {
  const Candidate* best = nullptr;
  for (const Candidate& each : choice.candidates)
    if (std::ranges::find(kinds, kind_of(each.granularity)) != kinds.end() &&
        (!best || each.expected() < best->expected()))
      best = &each;
  return best;
}

std::string milliseconds(const Candidate& candidate) {
  return formatted("%.3g ms a step%s", 1e3 * candidate.expected().count(),
                   candidate.was_tried() ? "" : " (predicted)");
}

}  // namespace

bool computes(const PlanOptions& options, DeviceKind kind) {
  return std::ranges::find(options.devices, kind) != options.devices.end();
}

std::vector<Layout> gpu_layouts(const PlanOptions& options, Precision precision) {
  if (options.gpu_layout) return {*options.gpu_layout};
  // Tensor cores read channels last: for them the other layout is only detours.
  if (precision != Precision::fp32) return {Layout::nhwc};
  return {Layout::nhwc, Layout::nchw};
}

void leave_out_devices(PlanOptions& options, bool cores_can, bool gpu_can) {
  if (!options.devices_open || (cores_can && gpu_can)) return;
  options.devices_open = false;
  if (!gpu_can) options.devices = {DeviceKind::cpu};
}

void require_sharing(const Graph& graph, std::int64_t batch, PlanOptions options) {
  if (granules_of(graph, batch) < 2)
    throw InputError("a batch of " + std::to_string(batch) +
                     " has no share for each of two devices: use --devices cuda, or cpu");
  if (options.chunks && options.chunks->size() > 1)
    throw InputError(
        "a list of --chunks cuts a share of the CPU that is known: add --shares, or give --chunks "
        "one number");
  const std::int64_t most = granules_of(graph, batch) - 1;  // the GPU's share is one at least
  if (options.chunks && (options.chunks->front() < 1 || options.chunks->front() > most))
    throw InputError("--chunks " + std::to_string(options.chunks->front()) + ": use 1 to " +
                     std::to_string(most) + ", as many as the cores' share can be cut into");
  options.devices = {DeviceKind::cpu, DeviceKind::cuda};
  if (const int cpus = cpus_to_compute(options); options.team.value_or(1) > cpus)
    throw InputError("--team " + std::to_string(*options.team) +
                     ": beside a GPU, which keeps a CPU, use 1 to " + std::to_string(cpus));
}

std::vector<int> teams_beside_gpu(const PlanOptions& options) {
  const int cpus = cpus_to_compute(options);
  if (cpus < 2) return {};
  std::set<int> teams{static_cast<int>(std::bit_floor(static_cast<unsigned>(cpus)))};
  for (int many = 2; cpus / many > 1; many *= 2) teams.insert(cpus / many);
  return {teams.begin(), teams.end()};
}

Choice choose_devices(const Graph& graph, const Recipe& recipe, const PlanOptions& options,
                      const CostsFor& costs, const PlanFits& fits) {
  return DeviceSearch(graph, recipe, options, costs, fits).run();
}

std::string roles_of(const Choice& choice) {
  if (!choice.devices_open) return "";
  const Candidate* gpu = best_of(choice, {PlanKind::gpu});
  const Candidate* cores = best_of(choice, {PlanKind::alone, PlanKind::workers, PlanKind::teams});
  const Candidate* both = best_of(choice, {PlanKind::shared});
  const PlanKind taken = kind_of(choice.best().granularity);
  std::string text = "roles: ";
  if (taken == PlanKind::gpu)
    text += "the GPU computes, cores load for it";
  else if (taken == PlanKind::shared)
    text += "the GPU computes " + std::to_string(choice.best().granularity.gpu_share) +
            " samples of each batch, cores the others";
  else
    text += "cores compute, the GPU rests";
  text += ": " + milliseconds(choice.best()) + "\n";
  if (gpu && cores && both) {
    const double cores_by_gpu = gpu->expected() / cores->expected();  // their speeds
    text += formatted(
        "  cores alone have %.3g%% of the GPU's speed: together they could reach %.3g%% of "
        "it at most,\n  and reach %.3g%%, meeting and reducing included\n",
        100 * cores_by_gpu, 100 * (1 + cores_by_gpu), 100 * (gpu->expected() / both->expected()));
  }
  if (gpu && taken != PlanKind::gpu) text += "  the GPU alone: " + milliseconds(*gpu) + "\n";
  if (cores && (taken == PlanKind::gpu || taken == PlanKind::shared))
    text += "  cores alone: " + milliseconds(*cores) + "\n";
  if (both && taken != PlanKind::shared)
    text += "  sharing, " + std::to_string(both->granularity.gpu_share) +
            " samples on the GPU: " + milliseconds(*both) + "\n";
  return text;
}

}  // namespace regatta
