#include "tune/plan_job.h"

#include <algorithm>
#include <functional>
#include <iostream>
#include <utility>

#include "backends/cpu/cpu_backend.h"
#include "base/json_reader.h"
#include "graph/op.h"
#include "train/loop.h"
#include "train/memory_check.h"
#include "tune/balance.h"
#include "tune/calibrate.h"
#include "tune/choose_devices.h"
#include "tune/recomputation.h"
#include "tune/stored_profile.h"
#include "tune/trial_ranking.h"
#include "tune/trials.h"

namespace regatta {
namespace {

// Calibration takes some two seconds: a run that takes little longer is over before it has paid.
constexpr Seconds worth_measuring{3};

// What the profile knows of a plan's step.
struct Known {
  double share = 0;     // of its predicted time: measured at about these sizes
  double measured = 0;  // of its predicted time: measured at any size
  Seconds step{0};      // that it takes at least
};

Known known_of(const TrainJob& job, const PlanOptions& options,
               const std::shared_ptr<const Profile>& profile) {
  const PricedStep step(job.graph, job.recipe, make_plan(job.graph, job.recipe, options), profile);
  return {step.known_share(options.workers), step.measured_share(options.workers),
          Seconds(step.least_seconds())};
}

// Whether teams may be the fastest: where chunks meet, or where the batch has fewer chunks than
// workers. calibrate_quickly() measures teams by the same rule.
bool teams_may_win(const TrainJob& job, const PlanOptions& options) {
  const bool open = !options.team && !options.chunks && options.workers > 1;
  return open &&
         (granules_of(job.graph, job.recipe.batch) < options.workers ||
          std::ranges::any_of(job.graph.nodes(), [](const Node& node) { return meets(node); }));
}

// How much is known of the costs of the rule of thumb's plan, or of a plan with smaller chunks if
// more is known of that: of a large network only small chunks are measured, which is enough.
Known known_at_best(const TrainJob& job, PlanOptions options,
                    const std::shared_ptr<const Profile>& profile) {
  options.devices = {DeviceKind::cpu};
  options.shares.reset();
  const Known coarse = known_of(job, options, profile);
  if (teams_may_win(job, options)) {
    // Whether they do is for measurements to tell.
    PlanOptions together = options;
    together.team = options.workers;
    together.chunks = {1};
    if (known_of(job, together, profile).measured < known_enough) return {0, 0, coarse.step};
  }
  if (options.chunks) return coarse;
  options.chunks = {
      std::min<std::int64_t>(4 * options.workers, granules_of(job.graph, job.recipe.batch))};
  const Known fine = known_of(job, options, profile);
  return {std::max(coarse.share, fine.share), std::max(coarse.measured, fine.measured),
          std::min(coarse.step, fine.step)};
}

bool computes(const PlanOptions& plan, DeviceKind kind) {
  return std::ranges::find(plan.devices, kind) != plan.devices.end();
}

// Whether anything is left for costs to decide. For a GPU alone that can only be the layout.
bool has_choice(const PlanOptions& plan, Precision precision) {
  if (plan.deterministic) return false;
  return computes(plan, DeviceKind::cpu) || plan.devices_open ||
         gpu_layouts(plan, precision).size() > 1;
}

bool shares_open(const PlanOptions& plan) { return plan.devices.size() > 1 && !plan.shares; }

// Measuring takes about as much memory as the plan that needs least of those to be compared:
// several chunks for each worker.
void require_memory_to_measure(const TrainJob& job, PlanOptions plan,
                               const std::function<void(const Plan&)>& require_memory) {
  if (shares_open(plan)) return require_sharing(job.graph, job.recipe.batch, plan);
  if (!plan.chunks && plan.devices.size() == 1)
    plan.chunks = {
        {std::min(granules_of(job.graph, job.recipe.batch), std::int64_t{4} * plan.workers)}};
  const Plan least = make_plan(job.graph, job.recipe, plan);
  require_valid(least, job.graph, job.recipe.batch);
  require_memory(least);
}

// Measures the GPU where too little is known of it: alone, in each layout that is to be compared,
// and beside cores. Returns false, having measured no more, where `worth`, called with the time of
// a step, says that the run is too short for it.
template <class Worth, class Measure>
bool measure_gpu(const TrainJob& job, PlanOptions plan,
                 const std::shared_ptr<const Profile>& profile, const Worth& worth,
                 const Measure& measure) {
  CalibrationOptions options{.workers = plan.workers, .layout = plan.layout};
  options.runtime = false;
  const bool cores = plan.devices_open || computes(plan, DeviceKind::cpu);
  const bool shares =
      cores && why_not([&] { require_sharing(job.graph, job.recipe.batch, plan); }).empty();
  const std::optional<std::vector<std::int64_t>> chunks = plan.chunks;
  for (const Layout layout : gpu_layouts(plan, job.recipe.precision)) {
    plan.gpu_layout = options.gpu_layout = layout;
    plan.devices = {DeviceKind::cuda};
    plan.shares.reset();
    plan.chunks = chunks;
    const Known alone = known_of(job, plan, profile);
    if (!worth(alone.step)) return false;
    options.devices.clear();
    if (alone.share < known_enough) options.devices = {DeviceKind::cuda};
    options.shared = false;
    if (shares) {
      plan.devices = {DeviceKind::cpu, DeviceKind::cuda};
      const std::int64_t granule = granule_of(job.graph);
      plan.shares = {granule, job.recipe.batch - granule};
      plan.chunks.reset();
      options.shared = known_of(job, plan, profile).measured < known_enough;
    }
    if (!options.devices.empty() || options.shared)
      measure([&] { return calibrate(job.graph, job.recipe, job.data, options); });
  }
  return true;
}

// The profile of this machine. If it knows too little it is measured first, with one line said of
// it, and kept; unless the run would be over sooner.
void get_costs(TrainJob& job, const PlanOptions& plan, std::optional<std::int64_t> steps) {
  std::string remark;
  const auto profile = std::make_shared<Profile>(profile_store().load(&remark));
  if (!remark.empty()) std::cerr << remark << "\n";
  job.profile = profile;
  bool said = false;
  const auto measure = [&](const auto& calibrated) {
    if (!std::exchange(said, true))
      std::cerr << "measuring what the work of " << job.recipe.model
                << " costs here, once: a few seconds\n";
    learn(job, calibrated());
  };
  const auto worth = [&](Seconds step) {
    return !steps || static_cast<double>(*steps) * step > worth_measuring;
  };
  if (computes(plan, DeviceKind::cuda)) {
    // A run on a GPU is judged by how long it takes there.
    if (!measure_gpu(job, plan, profile, worth, measure)) return;
    if (!computes(plan, DeviceKind::cpu) && !plan.devices_open) return;
  }
  const Known known = known_at_best(job, plan, job.profile);
  if (known.share >= known_enough) return;
  if (!computes(plan, DeviceKind::cuda) && !worth(known.step)) return;
  PlanOptions beside_gpu = plan;
  beside_gpu.devices = {DeviceKind::cpu, DeviceKind::cuda};
  const std::vector<int> teams = computes(plan, DeviceKind::cuda) && !plan.team
                                     ? teams_beside_gpu(beside_gpu)
                                     : std::vector<int>{};
  measure([&] {
    return calibrate_quickly(job.graph, job.recipe, job.data, plan.workers, Seconds(1.5), teams);
  });
}

// Leaves out candidates that do not fit into memory, unless none does.
void leave_out_too_large(const TrainJob& job, std::vector<Candidate>& candidates) {
  const auto rest = std::ranges::stable_partition(
      candidates, [&](const Candidate& each) { return fits_here(job, each.plan); });
  if (rest.begin() != candidates.begin()) candidates.erase(rest.begin(), rest.end());
}

Choice choose_by_costs(const TrainJob& job, const PlanOptions& plan) {
  const CostsFor costs = costs_by(job.profile, job.recipe.data);
  Choice choice = choose(job.graph, job.recipe, plan, costs);
  leave_out_too_large(job, choice.candidates);
  return choice;
}

// The best candidates are tried out and the fastest is put first, unless the profile knows how they
// did the last time, or the run is so short that it would not pay.
void try_out_best(TrainJob& job, Choice& choice, std::optional<std::int64_t> steps) {
  if (!choice.by_costs) return;
  apply_stored_trials(choice, job.graph, job.recipe, *job.profile);
  const Seconds longest = longest_trials(steps, choice.best().predicted);
  TrialNote note(longest);
  const std::vector<Observation> seen =
      try_candidates(job, choice, longest, [&] { note.on_turn(); });
  if (!seen.empty()) {
    learn(job, seen);
    apply_stored_trials(choice, job.graph, job.recipe, *job.profile);
  }
  if (!seen.empty()) std::cerr << doubts(choice);
  rank_by_trials(choice);
}

// Samples move between cores and GPU until they arrive together, by what real steps take them.
void balance_devices(TrainJob& job, Choice& choice, std::optional<std::int64_t> steps) {
  Candidate& best = choice.candidates.front();
  if (kind_of(best.granularity) != PlanKind::shared) return;
  const Seconds longest = longest_trials(steps, best.expected());
  TrialNote note(longest);
  note.on_turn();
  const Balanced found = balanced_by_trials(job, best.expected(), longest);
  give_chunks(job.plan, found.chunks);
  if (!found.seen.empty()) learn(job, found.seen);
  best.plan = job.plan;
}

void apply_fixed(TrainJob& job, const TuneOptions& tuning, const std::vector<std::string>& slow,
                 int workers, std::optional<std::int64_t> steps) {
  if (tuning.shares) {
    ShareTrials trials;
    if (tuning.by_costs && !job.plan.deterministic)
      trials.longest = [steps](Seconds step) { return longest_trials(steps, step); };
    share_among_workers(job, *tuning.shares, workers, slow, trials);
  } else {
    slow_down(job.plan, slow);
  }
  if (tuning.placement) place_tasks(job, *tuning.placement);
}

}  // namespace

PlannedJob plan_job(const JobOptions& options, const TuneOptions& tuning) {
  PlannedJob planned{open_job(options), {}};
  TrainJob& job = planned.job;
  PlanOptions plan = plan_options(options);
  if (tuning.shares)
    plan.chunks = {std::min<std::int64_t>(plan.workers, granules_of(job.graph, job.recipe.batch))};
  std::optional<std::int64_t> steps;  // that measuring and trials must pay for; none: any
  if (tuning.for_this_run)
    steps = last_step_of(options.epochs, options.steps, steps_per_epoch(job.recipe, *job.data));

  // Shares by worker and a split backward need CPU cores: a GPU cannot follow them.
  leave_out_devices(plan, cpu::hindrance(job.recipe.precision).empty(),
                    !tuning.shares && plan.backward.value_or(Backward::whole) == Backward::whole);
  // The GPU's is known before shares are chosen, CPU workers' when it is known which there are.
  std::vector<std::string> slow = tuning.slow, slow_cores = slow;
  plan.gpu_slowness = take_gpu_slowness(slow_cores);
  // Checks --slow before anything is measured.
  if (!computes(plan, DeviceKind::cuda)) slow_workers(slow, plan.workers);
  if (plan.recompute)
    if (const std::string chosen = settle_recomputation(job, plan, memory_left(plan));
        !chosen.empty())
      std::cerr << chosen << "\n";
  planned.options = plan;
  const auto require = [&](const Plan& made) {
    const auto check = [&] { require_memory(job, made); };
    if (!tuning.suggests_recompute) return check();
    suggest_recompute(
        job, plan, [&] { return memory_left(plan); }, check);
  };

  if (tuning.by_costs && has_choice(plan, job.recipe.precision)) {
    require_memory_to_measure(job, plan, require);
    get_costs(job, plan, steps);
    planned.choice = choose_by_costs(job, plan);
    job.plan = planned.choice->best().plan;
    require(job.plan);
    try_out_best(job, *planned.choice, steps);
    job.plan = planned.choice->best().plan;
    if (planned.choice->by_costs && shares_open(plan)) balance_devices(job, *planned.choice, steps);
    job.predicted_step = planned.choice->best().expected();
  } else {
    job.plan = make_plan(job.graph, job.recipe, plan);
  }
  require_runnable(job);
  // If the GPU is left out, its own slowness in --slow no longer applies.
  const auto is_gpu = [](const DeviceGroup* group) { return group->kind == DeviceKind::cuda; };
  if (plan.devices_open && std::ranges::none_of(groups_of(job.plan), is_gpu)) slow = slow_cores;
  apply_fixed(job, tuning, slow, plan.workers, steps);
  require_runnable(job);
  return planned;
}

void place_tasks(TrainJob& job, Placement placement) {
  job.plan.placement = placement;
  job.plan.order.clear();
  if (placement != Placement::fixed) return;
  // Played as if nothing were fixed.
  job.plan.placement = Placement::dynamic;
  std::vector<std::vector<std::uint32_t>> order = priced_step(job).order();
  job.plan.placement = placement;
  job.plan.order = std::move(order);
}

}  // namespace regatta
