#include "app/train_jobs.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

#include "app/devices.h"
#include "app/tuning_flags.h"
#include "base/error.h"
#include "platform/machine.h"
#include "train/run_folder.h"
#include "train/weights.h"

namespace regatta::app {
namespace {

std::int64_t last_step_asked(const TrainFlags& flags, const TrainJob& job) {
  return last_step_of(flags.epochs, flags.steps, steps_per_epoch(job.recipe, *job.data));
}

PlannedJob new_job(const TrainFlags& flags, const TensorFile& init, bool ranks) {
  JobOptions options = flags.job;
  options.class_names = class_names_of(init);
  options.shuffle = flags.shuffle == "on";
  apply(flags.recipe, options);
  options.epochs = flags.epochs;
  options.steps = flags.steps;
  options.plan.reduction = reduction_named(flags.reduction);
  if (flags.backward) options.plan.backward = backward_named(*flags.backward);
  if (flags.input) options.input = Shape::parse(*flags.input);
  if (flags.chunks) options.plan.chunks = parse_sizes("--chunks", *flags.chunks);
  TuneOptions tuning{.by_costs = by_costs(flags.granularity),
                     .for_this_run = !flags.explain,
                     .shares = worker_shares(flags.shares),
                     .slow = flags.placement.slow,
                     .suggests_recompute = !ranks};
  if (tuning.shares && flags.chunks)
    throw InputError("--shares " + *flags.shares + " cuts the batch itself: drop --chunks");
  if (flags.shares && !tuning.shares) options.plan.shares = samples_of(*flags.shares);
  set_devices(flags.devices, options.plan);
  if (ranks && options.plan.recompute == "auto")
    throw InputError("--recompute auto: ranks must agree on segments: use all or name them");
  if (ranks) options.plan.devices_open = false;  // a rank computes on its GPU, or on its cores
  if (flags.layout) options.plan.gpu_layout = layout_named(*flags.layout);
  options.precision = precision_named(flags.precision);
  if (const char* wanted = std::getenv("STARPU_SCHED"); wanted && *wanted)
    options.plan.scheduler = wanted;
  if (flags.scheduler) options.plan.scheduler = *flags.scheduler;
  options.plan.perf_model = perf_model_named(flags.perf_model);
  if (flags.placement.placement) tuning.placement = placement_named(*flags.placement.placement);
  if (options.model.empty()) throw InputError("train needs --model; regatta models lists them");
  if (options.data.empty())
    throw InputError("train needs --data, such as mnist, digits-synth or npy:X.npy,Y.npy");
  return plan_job(options, tuning);
}

// Throws InputError that names every flag given that has no say beside `by`, --plan or --replay.
// `compared`: flags of the recipe are compared with the plan's, so they may be given.
void require_nothing_planned(const CLI::App& app, bool compared, const std::string& by) {
  const std::set<std::string> allowed{"--plan",          "--replay",      "--platform",
                                      "--slow",          "--epochs",      "--steps",
                                      "--json",          "--test",        "--checkpoint-every",
                                      "--checkpoint-at", "--keep",        "--strict",
                                      "--trace",         "--trace-steps", "--out",
                                      "--init",          "--from",        "--save-gradients",
                                      "--no-refine",     "--new-classes", "--data",
                                      "--quiet",         "--replan",      "--mask"};
  // How to plan, which no recipe says.
  const std::set<std::string> of_plan{
      "--granularity", "--explain",    "--workers",       "--chunks",   "--team",
      "--devices",     "--shares",     "--layout",        "--loaders",  "--prefetch",
      "--segments",    "--reduction",  "--backward",      "--update",   "--recompute",
      "--scheduler",   "--perf-model", "--deterministic", "--placement"};
  const std::string refused = given_flags(app, [&](const std::string& name) {
    return compared ? of_plan.contains(name) : !allowed.contains(name);
  });
  if (refused.empty()) return;
  const bool several = refused.find(',') != std::string::npos;
  throw InputError(refused + " cannot be changed by " + by + ": " +
                   (several ? "they are the plan's" : "it is the plan's"));
}

// A recipe and plan from a file, or from a run whose schedule is to be repeated.
TrainJob planned_job(const CLI::App& app, const TrainFlags& flags, const TensorFile& init,
                     bool ranks) {
  // With a model the flags beside --plan tell a recipe of their own, which must be the plan's.
  const bool compared = flags.placement.plan && !flags.job.model.empty();
  require_nothing_planned(app, compared, flags.placement.plan ? "--plan" : "--replay");
  TrainJob job;
  if (flags.placement.plan) {
    const PlanFile file = read_plan_file(*flags.placement.plan, graph_of_recipe);
    if (compared) {
      TrainFlags asked = flags;
      asked.placement = {};
      asked.granularity = "fixed";
      const std::string differences =
          recipe_differences(new_job(asked, init, ranks).job.recipe, file.recipe);
      if (!differences.empty())
        throw InputError("'" + *flags.placement.plan +
                         "' was made for another recipe: " + differences);
    }
    if (ranks)
      require_platform(file.plan, file.platform_name, flags.placement.platform);
    else
      require_this_machine(file.plan, file.platform_name, flags.placement.platform);
    job = job_of_plan(file);
    // The same data, wherever it lies now.
    if (!flags.job.data.empty()) job.recipe.data = absolute_spec(flags.job.data);
  } else {
    if (ranks) throw InputError("--replay is for one process: start it without a launcher");
    job = job_of_replay(*flags.placement.replay);
  }
  if (flags.recipe.mask) set_mask(job, read_mask(*flags.recipe.mask), *flags.recipe.mask);
  if (const auto names = class_names_of(init); !names.empty()) job.class_names = names;
  if (flags.job.new_classes) job.class_names.clear();
  job.data = open_for(job.recipe, job.recipe.data, Split::train, job.class_names, flags.job.strict);
  require_same_data(job.recipe, job.recipe.data, *job.data);
  if (job.class_names.empty()) job.class_names = job.data->info().class_names;
  const std::string test =
      flags.job.test.value_or(job.data->info().splits_coincide ? "none" : job.recipe.data);
  if (test != "none")
    job.test = open_for(job.recipe, test, Split::test, job.class_names, flags.job.strict);
  // Over several ranks the first group of the plan may be another rank's: see follow_plan.
  if (!ranks) slow_down(job.plan, flags.placement.slow);
  return job;
}

// What --resume takes from the run; flags that would change the recipe make no sense beside it.
AskedRun resumed_run(const CLI::App& app, const TrainFlags& flags) {
  const std::set<std::string> allowed{"--resume",           "--epochs",    "--steps",  "--json",
                                      "--workers",          "--scheduler", "--data",   "--test",
                                      "--checkpoint-every", "--keep",      "--strict", "--trace",
                                      "--trace-steps",      "--no-refine", "--quiet",  "--update",
                                      "--shares",           "--replan"};
  for (const CLI::Option* option : app.get_options())
    if (option->count() > 0 && !allowed.contains(option->get_name()))
      throw InputError(option->get_name() + " cannot be changed by --resume: it is the run's");
  RunRecord run = read_run_json(*flags.resume);
  TrainJob& job = run.job;
  std::string test = flags.job.test.value_or(run.test.value_or("none"));
  const std::string spec = flags.job.data.empty() ? job.recipe.data : flags.job.data;
  try {
    job.data = open_for(job.recipe, spec, Split::train, job.class_names, flags.job.strict);
  } catch (const InputError& error) {
    if (!flags.job.data.empty()) throw;
    throw InputError(std::string(error.what()) + "; if the data moved, --data says where to");
  }
  require_same_data(job.recipe, spec, *job.data);
  // The data moved, and its test split with it. A plan belongs to its recipe by fingerprint, which
  // only recipes of old change with the path.
  if (!flags.job.test && test == job.recipe.data) test = spec;
  job.recipe.data = absolute_spec(spec);
  job.plan.recipe = job.recipe.fingerprint();
  if (test != "none")
    job.test = open_for(job.recipe, test, Split::test, job.class_names, flags.job.strict);
  if (flags.job.workers)
    for (DeviceGroup& group : job.plan.nodes.front().groups)
      if (group.kind == DeviceKind::cpu) {
        const int before =
            std::exchange(group.workers, std::max(1, *flags.job.workers / group.team));
        if (group.workers != before) {  // powers, of the former workers, no longer hold
          group.powers.clear();
          job.plan.pace_s = 0;
        }
        if (!group.slow.empty()) group.slow.resize(static_cast<std::size_t>(group.workers), 1);
      }
  if (flags.scheduler) job.plan.scheduler = *flags.scheduler;
  if (job.plan.scheduler != own_scheduler) job.plan.pace_s = 0;  // only this one keeps a pace
  // A fixed order belongs to the task list made for the plan's own number of CPUs: that stays.
  if (job.plan.order.empty()) job.plan.cpus = available_cpus();
  AskedRun asked;
  asked.goal.last_step = flags.epochs || flags.steps ? last_step_asked(flags, job) : run.last_step;
  asked.policy = run.checkpoints;
  asked.planned.job = std::move(job);
  return asked;
}

// What the flags say goes before what the run was started with.
CheckpointPolicy checkpoint_policy(const TrainFlags& flags, CheckpointPolicy policy) {
  if (flags.checkpoint_every)
    policy = CheckpointPolicy::parse(*flags.checkpoint_every, policy.keep, policy.kept);
  policy.keep = flags.keep.value_or(policy.keep);
  if (flags.checkpoint_at) policy.kept = parse_sizes("--checkpoint-at", *flags.checkpoint_at);
  return policy;
}

}  // namespace

AskedRun asked_run(const CLI::App& app, const TrainFlags& flags, const TensorFile& init,
                   bool ranks) {
  if (flags.placement.plan && flags.placement.replay)
    throw InputError("--plan and --replay exclude each other; give one");
  if (flags.placement.platform && !flags.placement.plan)
    throw InputError(
        "--platform says which machine a plan was made for: give the plan with --plan, or drop it");
  AskedRun asked;
  if (flags.resume) {
    asked = resumed_run(app, flags);
  } else {
    if (flags.placement.from_file())
      asked.planned.job = planned_job(app, flags, init, ranks);
    else
      asked.planned = new_job(flags, init, ranks);
    TrainJob& job = asked.planned.job;
    asked.goal.last_step = last_step_asked(flags, job);
    if (job.weights) job.started_from = flags.job.model;
    if (flags.init) job.started_from = *flags.init;
    if (flags.from) job.started_from = *flags.from;
  }
  asked.policy = checkpoint_policy(flags, asked.policy);
  return asked;
}

}  // namespace regatta::app
