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
#include "tune/trials.h"

namespace regatta {
namespace {

// Calibration takes some two seconds: a run that takes little longer is over before it has paid.
constexpr Seconds worth_measuring{3};

// What the profile knows of a plan's step.
struct Known {
  MeasuredShares measured;  // of its predicted time
  Seconds step{0};          // that it takes at least
};

Known known_of(const TrainJob& job, const PlanOptions& options,
               const std::shared_ptr<const Profile>& profile) {
  const PricedStep step(job.graph, job.recipe, make_plan(job.graph, job.recipe, options), profile);
  return {step.measured_shares(options.workers), Seconds(step.least_seconds())};
}

// Whether teams may be the fastest: where chunks meet, or where the batch has fewer chunks than
// workers. quick_calibration() measures teams by the same rule.
bool teams_may_win(const TrainJob& job, const PlanOptions& options) {
  const bool open = !options.team && !options.chunks && options.workers > 1;
  return open &&
         (granules_of(job.graph, job.recipe.batch) < options.workers ||
          std::ranges::any_of(job.graph.nodes(), [](const Node& node) { return meets(node); }));
}

// Four chunks for each worker, or as many as the batch can be cut into.
std::vector<std::int64_t> fine_chunks(const TrainJob& job, const PlanOptions& options) {
  return {std::min<std::int64_t>(4 * options.workers, granules_of(job.graph, job.recipe.batch))};
}

// How much is known of the costs of the rule of thumb's plan, or of a plan with smaller chunks if
// more is known of that: of a large network only small chunks are measured, which is enough.
// Nothing if one of `teams`, which are to be compared too, was never measured.
Known known_of_cores(const TrainJob& job, PlanOptions options, std::vector<int> teams) {
  // A list of sizes beside a GPU cuts the CPU's share alone.
  if (options.devices.size() > 1 && options.chunks && options.chunks->size() > 1)
    options.chunks.reset();
  options.devices = {DeviceKind::cpu};
  options.shares.reset();
  const Known coarse = known_of(job, options, job.profile);
  // Whether they do is for measurements to tell.
  if (teams_may_win(job, options)) teams.push_back(options.workers);
  for (const int team : teams)
    if (!knows_team(job, options, job.profile, team)) return {{0, 0}, coarse.step};
  if (options.chunks) return coarse;
  options.chunks = fine_chunks(job, options);
  const Known fine = known_of(job, options, job.profile);
  const bool finer = fine.measured.near_size > coarse.measured.near_size;
  return {finer ? fine.measured : coarse.measured, std::min(coarse.step, fine.step)};
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
  if (!plan.chunks && plan.devices.size() == 1) plan.chunks = fine_chunks(job, plan);
  const Plan least = make_plan(job.graph, job.recipe, plan);
  require_valid(least, job.graph, job.recipe.batch);
  require_memory(least);
}

// Cores are measured in fp32 where a GPU computes in tf32.
bool fits_to_measure(const TrainJob& job, const Plan& plan) {
  if (job.recipe.precision != Precision::tf32 || gpu_of(plan)) return fits_here(job, plan);
  TrainJob in_fp32 = job;
  in_fp32.recipe.precision = Precision::fp32;
  return fits_here(in_fp32, plan);
}

// What is to be measured of a GPU with this layout, alone and beside cores.
CalibrationOptions lacking_of_gpu(const TrainJob& job, PlanOptions plan, const Known& alone,
                                  const std::shared_ptr<const Profile>& profile) {
  CalibrationOptions lacking{.workers = plan.workers, .devices = {}, .gpu = plan, .runtime = false};
  if (plan.devices.size() > 1) lacking.gpu.chunks.reset();  // they cut the CPU's share
  lacking.fits = [&job](const Plan& measured) { return fits_to_measure(job, measured); };
  if (alone.measured.near_size < known_enough) lacking.devices = {DeviceKind::cuda};
  const bool cores = plan.devices_open || computes(plan, DeviceKind::cpu);
  if (cores && why_not([&] { require_sharing(job.graph, job.recipe.batch, plan); }).empty()) {
    const std::int64_t granule = granule_of(job.graph);
    plan.devices = {DeviceKind::cpu, DeviceKind::cuda};
    plan.shares = {granule, job.recipe.batch - granule};
    plan.chunks.reset();
    lacking.shared = known_of(job, plan, profile).measured.any_size < known_enough;
  }
  return lacking;
}

// The profile of this machine. If it knows too little it is measured first, with one line said of
// it, and kept; unless the run would be over sooner.
void get_costs(TrainJob& job, PlanOptions plan, std::optional<std::int64_t> steps) {
  std::string remark;
  const auto stored = std::make_shared<const Profile>(profile_store().load(&remark));
  if (!remark.empty()) std::cerr << remark << "\n";
  job.profile = stored;
  bool said = false;
  const auto measure = [&](const CalibrationOptions& lacking) {
    if (!std::exchange(said, true))
      std::cerr << "measuring what the work of " << job.recipe.model
                << " costs here, once: a few seconds\n";
    learn(job, calibrate(job, lacking));
  };
  const auto worth = [&](Seconds step) {
    return !steps || static_cast<double>(*steps) * step > worth_measuring;
  };
  std::vector<int> more_teams;
  const bool gpu = computes(plan, DeviceKind::cuda);
  if (gpu) {
    for (const Layout layout : gpu_layouts(plan, job.recipe.precision)) {
      PlanOptions of_layout = plan;
      of_layout.gpu_layout = layout;
      PlanOptions by_itself = of_layout;
      by_itself.devices = {DeviceKind::cuda};
      by_itself.shares.reset();
      if (plan.devices.size() > 1) by_itself.chunks.reset();  // they cut the CPU's share
      const Known alone = known_of(job, by_itself, stored);
      // A run on a GPU is judged by how long it takes there.
      if (!worth(alone.step)) return;
      const CalibrationOptions lacking = lacking_of_gpu(job, of_layout, alone, stored);
      if (!lacking.devices.empty() || lacking.shared) measure(lacking);
    }
    if (!computes(plan, DeviceKind::cpu) && !plan.devices_open) return;
    PlanOptions beside_gpu = plan;
    beside_gpu.devices = {DeviceKind::cpu, DeviceKind::cuda};
    if (!plan.team) more_teams = teams_beside_gpu(beside_gpu);
  }
  const Known known = known_of_cores(job, plan, more_teams);
  if (known.measured.near_size < known_enough && (gpu || worth(known.step))) {
    CalibrationOptions lacking = quick_calibration(job, plan.workers, more_teams);
    lacking.fits = [&](const Plan& measured) { return fits_to_measure(job, measured); };
    measure(lacking);
  }
}

Choice choose_by_costs(const TrainJob& job, const PlanOptions& plan) {
  return choose(job.graph, job.recipe, plan, costs_by(job.profile, job.recipe.data),
                [&](const Plan& made) { return fits_here(job, made); });
}

// The best candidates are tried out and the fastest is put first, unless the profile knows how they
// did the last time, or the run is so short that it would not pay.
void try_out_best(TrainJob& job, Choice& choice, std::optional<std::int64_t> steps) {
  if (!choice.by_costs) return;
  apply_stored_trials(choice, job.graph, job.recipe, *job.profile);
  const std::vector<Observation> seen =
      try_candidates(job, choice, longest_trials(steps, choice.best().predicted));
  if (!seen.empty()) {
    learn(job, seen);
    apply_stored_trials(choice, job.graph, job.recipe, *job.profile);
    std::cerr << doubts(choice);
  }
  rank_by_trials(choice);
}

// Samples move between cores and GPU until they arrive together, by what real steps take them.
void balance_devices(TrainJob& job, Choice& choice, std::optional<std::int64_t> steps) {
  Candidate& best = choice.candidates.front();
  if (kind_of(best.granularity) != PlanKind::shared) return;
  balance_by_trials(job, best.expected(), longest_trials(steps, best.expected()));
  best.plan = job.plan;
}

void apply_fixed(TrainJob& job, const TuneOptions& tuning, const std::vector<std::string>& slow,
                 int workers, std::optional<std::int64_t> steps) {
  if (tuning.shares) {
    share_among_workers(job, *tuning.shares, workers, slow);
    if (tuning.shares == WorkerShares::speed && workers > 1 && tuning.by_costs &&
        !job.plan.deterministic) {
      // Costs of a chunk beside others are known less well than the time of a few real steps.
      const Seconds step(priced_step(job).play().step_seconds);
      balance_by_trials(job, step, longest_trials(steps, step));
    }
  } else {
    slow_down(job.plan, slow);
  }
  if (tuning.placement) place_tasks(job, *tuning.placement);
}

}  // namespace

bool knows_team(const TrainJob& job, PlanOptions options,
                const std::shared_ptr<const Profile>& profile, int team) {
  options.devices = {DeviceKind::cpu};
  options.shares.reset();
  options.team = team;
  // A chunk for each team, as they are measured: where chunks meet, a cut batch has other work than
  // a whole one.
  options.chunks = {std::min<std::int64_t>(std::max(options.workers / team, 1),
                                           granules_of(job.graph, job.recipe.batch))};
  return known_of(job, options, profile).measured.any_size >= known_enough;
}

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
  if (plan.devices_open && !gpu_of(job.plan)) slow = slow_cores;
  apply_fixed(job, tuning, slow, plan.workers, steps);
  require_runnable(job);
  return planned;
}

void place_tasks(TrainJob& job, Placement placement) {
  job.plan.placement = Placement::dynamic;
  job.plan.order.clear();
  // A fixed order is that of a play in which nothing is fixed.
  if (placement == Placement::fixed) job.plan.order = priced_step(job).order();
  job.plan.placement = placement;
}

}  // namespace regatta
