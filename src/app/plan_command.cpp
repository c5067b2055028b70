#include <algorithm>
#include <iostream>
#include <set>

#include "app/bench_cell.h"
#include "app/command.h"
#include "app/devices.h"
#include "app/fleet_request.h"
#include "app/lists.h"
#include "app/node_plan.h"
#include "app/optimized_plan.h"
#include "app/placement.h"
#include "app/plan_answers.h"
#include "app/plan_memory.h"
#include "app/profiles.h"
#include "app/recipe_flags.h"
#include "app/tuning_flags.h"
#include "base/error.h"
#include "base/files.h"
#include "base/shell_word.h"
#include "models/load.h"
#include "platform/change.h"
#include "platform/energy.h"
#include "platform/machine.h"
#include "platform/probe.h"
#include "report/text.h"
#include "tasks/footprint.h"
#include "tasks/meetings.h"
#include "tune/plan_job.h"
#include "tune/stored_profile.h"

namespace regatta::app {
namespace {

constexpr std::int64_t made_up_steps = 100;  // of an epoch of made-up images

struct PlanFlags {
  JobOptions job;
  RecipeFlags recipe;
  PlacementFlags placement;
  std::string shuffle = "on", reduction = "slots", granularity = "auto", update = "ring";
  std::string devices = "auto", precision = "fp32";
  bool explain = false;
  std::optional<std::string> input, chunks, shares, nodes, stages, platform, out, json_file;
  std::optional<std::string> objective, pareto, backward;
  std::vector<std::string> what_if;
  OptimizeRequest request;  // with an objective
};

void declare(CLI::App& app, PlanFlags& flags) {
  JobOptions& job = flags.job;
  app.add_option("--model", job.model, "a name that regatta models lists, or a file of a network")
      ->required()
      ->type_name("NAME|FILE");
  app.add_option("--data", job.data, "as regatta train takes it (default: made-up images)")
      ->type_name("SPEC");
  app.add_option("--batch", job.batch, "images per step")
      ->type_name("N")
      ->check(whole_number(1))
      ->capture_default_str();
  declare_recipe(app, flags.recipe);
  app.add_option("--seed", job.seed, "of weights, order and synthetic data")
      ->check(whole_number(0, UINT64_MAX))
      ->capture_default_str();
  app.add_option("--shuffle", flags.shuffle, "visit the data in a new order each epoch")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
  app.add_option("--input", flags.input, "image size, if not the data's")->type_name("CxHxW");
  app.add_option("--classes", job.classes, "classes, if not the data's")
      ->type_name("N")
      ->check(whole_number(2));
  app.add_option("--workers", job.workers, "CPU workers of this machine")
      ->type_name("N")
      ->check(whole_number(1, most_workers));
  app.add_option("--granularity", flags.granularity, "auto or fixed, as regatta train takes it")
      ->capture_default_str();
  app.add_option("--segments", job.plan.segments, "as regatta train takes it")->type_name("HOW");
  app.add_option("--chunks", flags.chunks, "as regatta train takes it")->type_name("N|SIZES");
  app.add_option("--reduction", flags.reduction, "slots, redux or loop")->capture_default_str();
  add_backward_flag(app, flags.backward);
  add_recompute_flag(app, job.plan.recompute);
  app.add_option("--shares", flags.shares,
                 "of groups, or without --platform of CPU workers: equal, speed (all reach each\n"
                 "point of synchronisation together) or numbers of samples")
      ->type_name("HOW");
  app.add_option("--platform", flags.platform, "plan for this platform instead of this machine")
      ->type_name("FILE");
  app.add_option("--nodes", flags.nodes, "some of the platform's nodes, such as a,b")
      ->type_name("NAMES");
  app.add_option("--update", flags.update,
                 "how nodes bring gradients together: ring, tree, hierarchical, server:cpu,\n"
                 "server:gpu, replicated, chain or mpi")
      ->capture_default_str();
  app.add_option(
         "--devices", flags.devices,
         "what computes: cpu, cuda, cpu,cuda, or auto: on each node its GPUs, or its cores\n"
         "where it has none, and cores beside GPUs if that is predicted to be faster")
      ->type_name("LIST")
      ->capture_default_str();
  app.add_option("--precision", flags.precision, "fp32, bf16, or on GPUs tf32")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_flag("--explain", flags.explain, "print what each group is for, and why");
  app.add_option("--stages", flags.stages, "a pipeline by hand: NODE/GROUP=FIRST-LAST,...")
      ->type_name("LIST");
  app.add_option("--objective", flags.objective,
                 "choose devices, power states, shares and exchange for the least of it")
      ->check(CLI::IsMember({"time", "energy", "edp", "cost"}));
  app.add_option("--images", flags.request.images, "of the whole run, which limits speak of")
      ->type_name("N")
      ->check(whole_number(1));
  const auto limit = [&](const char* name, std::optional<double>& value, const char* unit,
                         const char* what) {
    app.add_option(name, value, what)->type_name(unit)->check(number(0, 1e18));
  };
  limit("--deadline", flags.request.limits.seconds, "S", "most seconds of the whole run");
  limit("--power-cap", flags.request.limits.watts, "W", "most watts of all nodes at any time");
  limit("--joules", flags.request.limits.joules, "J", "most joules of the whole run");
  limit("--money", flags.request.limits.money, "M", "most money of the whole run");
  app.add_option("--pareto", flags.pareto,
                 "the front of time against energy, or against money with --objective cost:\n"
                 "a file whose name ends in .csv, .json or .svg")
      ->type_name("FILE");
  app.add_option(
         "--what-if", flags.what_if,
         "what would change: \"+2 x NODE\", \"-NODE\", \"LINK x10\", \"batch 512\"; repeat it\n"
         "for several")
      ->type_name("CHANGE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_worker_flags(app, flags.placement);
  app.add_option("--out", flags.out, "where the plan goes (default: plan.json)")->type_name("FILE");
  add_json_flag(app, flags.json_file);
  app.footer(
      "Example:\n  regatta plan --model resnet18 --batch 64 --out plan.json\n"
      "  regatta train --plan plan.json --steps 100");
}

JobOptions job_options(const PlanFlags& flags) {
  JobOptions options = flags.job;
  options.shuffle = flags.shuffle == "on";
  apply(flags.recipe, options);
  options.test = "none";
  options.plan.reduction = reduction_named(flags.reduction);
  if (flags.backward) options.plan.backward = backward_named(*flags.backward);
  options.precision = precision_named(flags.precision);
  if (flags.input) options.input = Shape::parse(*flags.input);
  if (options.data.empty()) {
    if (is_model_file(options.model))
      throw InputError("plan needs --data for a network of one's own");
    CellOptions cell;
    cell.model = options.model;
    cell.input = flags.input;
    cell.batch = options.batch;
    cell.classes = options.classes;
    cell.steps = made_up_steps;
    options.data = bench_data(cell);
  }
  if (flags.chunks) options.plan.chunks = parse_sizes("--chunks", *flags.chunks);
  return options;
}

std::vector<PlannedBucket> buckets_of(const Blueprint& blueprint) {
  std::vector<PlannedBucket> buckets;
  for (const Bucket& bucket : blueprint.buckets)
    buckets.push_back({bucket.segment.value, static_cast<std::int64_t>(bucket.bytes)});
  return buckets;
}

// By playing the task list.
Prediction predicted_here(const TrainJob& job, const PricedStep& step) {
  const Played played = step.play();
  // The relative interval of the work is that of the step.
  Estimate work;
  for (const Task& task : step.list().tasks) work += step.costs().of(task, 1);
  const double low = work.seconds > 0 ? work.low / work.seconds : 1;
  const double high = work.seconds > 0 ? work.high / work.seconds : 1;
  Prediction predicted;
  predicted.step = {played.step_seconds, played.step_seconds * std::min(low, 1.0),
                    played.step_seconds * std::max(high, 1.0)};
  predicted.energy_j = cpus_of(job.plan) * assumed_watts_per_cpu * played.step_seconds;
  const std::vector<Footprint> found = footprints(step.blueprint(), {&step.list()});
  const std::vector<PlanWorker> workers = workers_of(job.plan);
  const auto groups = groups_of(job.plan);
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    const std::size_t bytes = peak_bytes(step.blueprint(), found, GroupId{g});
    GroupPrediction each{job.plan.nodes.front().name, groups[g]->name, 0,
                         static_cast<std::int64_t>(bytes)};
    for (std::size_t w = 0; w < std::min(workers.size(), played.workers.size()); ++w)
      if (workers[w].group == std::optional(GroupId{g}))
        each.busy_s += played.workers[w].busy * played.step_seconds / groups[g]->workers;
    predicted.groups.push_back(std::move(each));
  }
  predicted.memories = memories_of(job);
  return predicted;
}

// What measures the costs of this plan, with all flags that change them.
std::string calibration_of(const PlanFlags& flags, const Plan& plan) {
  std::string text = "regatta calibrate --model " + shell_word(flags.job.model);
  const auto add = [&](const std::string& flag, const std::string& value) {
    text += " " + flag + " " + value;
  };
  if (flags.input) add("--input", *flags.input);
  if (flags.job.classes) add("--classes", std::to_string(*flags.job.classes));
  if (!flags.job.data.empty()) add("--data", shell_word(flags.job.data));
  add("--batch", std::to_string(flags.job.batch));
  if (flags.recipe.batch_norm != "whole") add("--batch-norm", flags.recipe.batch_norm);
  if (flags.recipe.optimizer != "sgd") add("--optimizer", flags.recipe.optimizer);
  if (flags.precision != "fp32") add("--precision", flags.precision);
  std::set<int> teams;
  std::set<DeviceKind> kinds;
  for (const DeviceGroup* group : groups_of(plan)) {
    kinds.insert(group->kind);
    if (group->team > 1) teams.insert(group->team);
  }
  std::string sizes;
  for (const int team : teams) sizes += (sizes.empty() ? "" : ",") + std::to_string(team);
  if (!sizes.empty()) add("--teams", sizes);
  if (kinds.contains(DeviceKind::cuda)) add("--devices", kinds.size() > 1 ? "cpu,cuda" : "cuda");
  return text;
}

// How much of a plan's predicted work rests on no measurement, and what would measure it.
void tell_guesses(double guessed, const PlanFlags& flags, const Plan& plan) {
  constexpr double hardly_any = 0.005;
  if (guessed < hardly_any)
    std::printf("costs: all of the predicted work was measured\n");
  else
    std::printf("costs: %s of the predicted work is guessed; on its machine, %s measures it\n",
                percent_text(guessed).c_str(), calibration_of(flags, plan).c_str());
}

// On this machine: granularity by costs, chunks by the workers' speeds, placement.
PlanFile plan_here(const PlanFlags& flags) {
  if (flags.nodes || flags.stages)
    throw InputError("--nodes and --stages need --platform: this machine is one node");
  JobOptions options = job_options(flags);
  set_devices(flags.devices, options.plan);
  if (flags.shares && flags.chunks)
    throw InputError("--shares cuts the batch itself: drop --chunks");
  TuneOptions tuning{.by_costs = by_costs(flags.granularity),
                     .shares = worker_shares(flags.shares),
                     .slow = flags.placement.slow,
                     .suggests_recompute = true};
  if (flags.shares && !tuning.shares && options.plan.devices_open)
    throw InputError("--shares: --devices auto decides them; name several in --devices");
  if (flags.shares && !tuning.shares) {
    const std::vector<std::int64_t> samples = samples_of(*flags.shares);
    require_sizes("--shares", samples, options.batch,
                  std::max<std::int64_t>(options.batch_norm_group, 1));
    if (options.plan.devices.size() > 1)
      options.plan.shares = samples;
    else  // a single number would be a number of chunks
      options.plan.chunks = samples.size() > 1 ? samples : std::vector<std::int64_t>{1};
  }
  if (flags.placement.placement) tuning.placement = placement_named(*flags.placement.placement);
  TrainJob job = plan_job(options, tuning).job;
  if (!job.profile) job.profile = stored_profile();
  job.plan.platform = machine_fingerprint();
  require_memory(job.graph, job.plan, job.recipe, this_machine());

  const PricedStep step = priced_step(job);
  if (groups_of(job.plan).front()->chunks.size() > 1) {
    const std::vector<Meeting> met = step.meetings();
    std::printf("workers arrive within %.1f%% of each other at %zu point%s of synchronisation\n",
                100 * apart(met), met.size(), met.size() == 1 ? "" : "s");
  }
  tell_guesses(1 - step.measured_shares(groups_of(job.plan).front()->workers).any_size, flags,
               job.plan);
  PlanFile file{.recipe = job.recipe, .network = job.network, .platform_name = host_name()};
  file.plan = job.plan;
  file.predicted = predicted_here(job, step);
  file.buckets = buckets_of(step.blueprint());
  return file;
}

// By simulation. The interval is that of costs drawn from theirs.
Prediction predicted_there(const Plan& plan, const sim::PreparedFleet& fleet) {
  const std::vector<sim::Rank>& ranks = fleet.fleet().ranks;
  const int replicas = ranks.size() > 64 ? 1 : 9;
  const sim::Simulated made = sim::simulate(fleet.fleet(), {.steps = 3, .replicas = replicas});
  const auto [low, high] = std::ranges::minmax(made.step_s);
  Prediction predicted;
  predicted.step = {made.step_s.front(), low, high};
  predicted.energy_j = made.energy_j.front();
  for (const sim::GroupUse& use : made.groups) {
    const auto memory = fleet.memory(ranks[static_cast<std::size_t>(use.rank)].kind);
    if (use.pool >= memory.size()) continue;  // workers that only load
    // Ranks that are alike are simulated as one kind, whose groups bear the names of the first.
    const std::string& group =
        plan.stages.empty() ? plan.nodes[static_cast<std::size_t>(use.rank)].groups[use.pool].name
                            : use.group;
    predicted.groups.push_back({use.node, group, use.busy_s / use.workers,
                                static_cast<std::int64_t>(memory[use.pool].bytes), use.energy_j});
  }
  return predicted;
}

void check_objective(const CLI::App& app, const PlanFlags& flags) {
  if (!flags.objective) {
    if (flags.request.images || !flags.request.limits.none() || flags.pareto ||
        !flags.what_if.empty())
      throw InputError(
          "--images, limits, --pareto and --what-if need --objective time, energy, edp or cost");
    return;
  }
  if (flags.pareto) {
    require_front_name(*flags.pareto);
    require_writable(*flags.pareto);
  }
  if (!flags.platform)
    throw InputError(
        "--objective needs --platform FILE: regatta probe --out FILE writes that of "
        "this machine");
  const std::set<std::string> chosen{"--nodes", "--shares", "--stages", "--update"};
  const std::string refused =
      given_flags(app, [&](const std::string& name) { return chosen.contains(name); });
  if (!refused.empty())
    throw InputError("--objective chooses devices, shares and exchange itself: drop " + refused);
}

// What an objective brings beside the plan.
struct Answers {
  std::optional<Optimized> optimized;
  std::optional<Front> front;
  std::vector<WhatIf> asked;
};

// All that a plan for a platform is made from.
struct PlatformSubject {
  TrainJob job;
  Platform platform;
  sim::Profiles profiles;
  NodeOptions nodes;
};

Optimized optimized(const PlatformSubject& subject, const OptimizeRequest& request) {
  return optimized_plan(subject.job.graph, subject.job.recipe, subject.platform, subject.profiles,
                        subject.nodes, request);
}

WhatIf answer(const PlanFlags& flags, const PlatformSubject& subject,
              const OptimizeRequest& request, const std::string& change) {
  constexpr std::string_view batch = "batch ";
  PlatformSubject changed = subject;
  if (change.starts_with(batch)) {
    PlanFlags other = flags;
    other.job.batch = parse_sizes("--what-if batch", change.substr(batch.size())).front();
    if (other.job.batch < 1) throw InputError("--what-if " + change + ": use 1 or more samples");
    changed.job = make_job(job_options(other));
  } else {
    changed.platform = changed_platform(subject.platform, change);
  }
  WhatIf asked{change};
  try {
    asked.with = optimized(changed, request);
  } catch (const InputError& error) {
    asked.refused = error.what();
  }
  return asked;
}

Answers answers_to(const PlanFlags& flags, const PlatformSubject& subject) {
  OptimizeRequest request = flags.request;
  request.objective = optimize::objective_named(*flags.objective);
  if (flags.placement.placement) request.placement = placement_named(*flags.placement.placement);
  // Runs of the same images are compared.
  if (!flags.what_if.empty() && !request.images) request.images = subject.job.recipe.batch;
  Answers answers;
  answers.optimized = optimized(subject, request);
  if (flags.pareto)
    answers.front = front_of(subject.job.graph, subject.job.recipe, subject.platform,
                             subject.profiles, subject.nodes, request);
  for (const std::string& change : flags.what_if)
    answers.asked.push_back(answer(flags, subject, request, change));
  return answers;
}

// With an objective, what it brought goes to `answers`.
PlanFile plan_for_platform(const PlanFlags& flags, Answers& answers) {
  if (!flags.placement.slow.empty())
    throw InputError("--slow is for plans of this machine: drop --platform");
  if (flags.job.plan.recompute == "auto")
    throw InputError("--recompute auto is for this machine: with --platform use all or segments");
  const Platform platform = read_platform(*flags.platform);
  JobOptions options = job_options(flags);
  NodeOptions nodes;
  nodes.devices = platform_devices_named(flags.devices);
  // The job is made for its recipe alone: what this machine computes in has no say.
  if (options.precision != Precision::fp32) options.plan.devices = {DeviceKind::cuda};
  const TrainJob job = make_job(options);
  const sim::Profiles profiles =
      profiles_for(platform, std::filesystem::path(*flags.platform).parent_path());
  if (flags.nodes) nodes.nodes = listed(*flags.nodes);
  nodes.shares = flags.shares.value_or("speed");
  nodes.update = node_update_named(flags.update);
  nodes.plan = options.plan;
  nodes.plan.devices = {DeviceKind::cpu};
  nodes.plan.layout = default_cpu_layout();
  PlanFile file{.recipe = job.recipe, .network = job.network, .platform_name = platform.name};
  if (flags.stages && (flags.nodes || flags.shares))
    throw InputError("--stages says who computes what: drop --nodes and --shares");
  if (flags.objective) {
    answers = answers_to(flags, {job, platform, profiles, nodes});
    file.plan = answers.optimized->plan;
  } else if (flags.stages) {
    file.plan =
        plan_over_stages(job.graph, job.recipe, platform, parse_stages(*flags.stages), nodes);
  } else {
    NodePlan made = planned_over_nodes(job.graph, job.recipe, platform, profiles, nodes);
    file.plan = std::move(made.plan);
    file.roles = std::move(made.roles);
  }
  const Placement placement =
      flags.placement.placement ? placement_named(*flags.placement.placement) : file.plan.placement;
  if (placement != file.plan.placement) {
    if (placement != Placement::dynamic && file.plan.stages.empty()) {
      sim::PreparedFleet free(job.graph, job.recipe, platform, profiles);
      free.follow(file.plan);
      place_over_nodes(file.plan, placement, free);
    } else {
      file.plan.placement = placement;
    }
  }
  require_valid(file.plan, job.graph, job.recipe.batch);
  require_memory(job.graph, file.plan, job.recipe, platform);
  file.buckets = buckets_of(
      make_blueprint(job.graph, plan_of_node(file.plan, 0), numbers_of(job.recipe), true));
  if (answers.optimized && !answers.optimized->simulated) return file;
  sim::PreparedFleet fleet(job.graph, job.recipe, platform, profiles);
  fleet.follow(file.plan);
  file.predicted = predicted_there(file.plan, fleet);
  file.predicted->memories = memories_of(job.graph, file.plan, job.recipe);
  const double guessed = guessed_share(fleet);
  if (answers.optimized) answers.optimized->guessed = guessed;
  if (profiles.empty())
    std::printf("costs: all are estimates, since the platform names no profile\n");
  else
    tell_guesses(guessed, flags, file.plan);
  if (groups_of(file.plan).size() > 1 && file.plan.stages.empty()) {
    const std::vector<double> seconds = seconds_to_gradients(file.plan, fleet);
    const auto [first, last] = std::ranges::minmax(seconds);
    std::printf("groups arrive within %.1f%% of each other where their gradients meet\n",
                100 * (1 - first / last));
  }
  return file;
}

constexpr std::size_t most_groups_told = 12;

void explain(const std::vector<GroupRole>& roles) {
  for (const GroupRole& each : roles)
    std::printf("  %s/%s: %s: %s\n", each.node.c_str(), each.group.c_str(),
                std::string(role_name(each.role)).c_str(), each.reason.c_str());
}

void print(const PlanFile& file, const std::string& path) {
  const Plan& plan = file.plan;
  std::printf("%s: %zu node%s, %zu segments, placement %s\n", path.c_str(), plan.nodes.size(),
              plan.nodes.size() == 1 ? "" : "s", plan.segments.size(),
              std::string(placement_name(plan.placement)).c_str());
  if (const auto again = std::ranges::count_if(plan.segments, &Segment::recomputed); again > 0)
    std::printf("  computed again in backward: %zd of %zu segments\n", again, plan.segments.size());
  std::size_t told = 0;
  for (const PlanNode& node : plan.nodes)
    for (const DeviceGroup& group : node.groups) {
      if (told++ >= most_groups_told) continue;
      std::printf("  %s/%s: %lld samples in %zu chunk%s, %d worker%s", node.name.c_str(),
                  group.name.c_str(), static_cast<long long>(share_of(group)), group.chunks.size(),
                  group.chunks.size() == 1 ? "" : "s", group.workers,
                  group.workers == 1 ? "" : "s");
      if (!group.state.empty()) std::printf(", state %s", group.state.c_str());
      for (const Stage& stage : plan.stages)
        if (stage.node == node.name && stage.group == group.name)
          std::printf(", segments %u to %u", stage.first, stage.last);
      if (file.predicted)
        std::printf(", %.0f MB",
                    static_cast<double>(file.predicted->groups[told - 1].peak_bytes) / 1e6);
      std::printf("\n");
    }
  if (told > most_groups_told) std::printf("  and %zu more groups\n", told - most_groups_told);
  if (!file.predicted) return;
  const Prediction& predicted = *file.predicted;
  std::fputs(text_of(predicted.memories).c_str(), stdout);
  std::printf("predicted: %.4g s a step (%.4g to %.4g), %.4g J, modelled\n", predicted.step.seconds,
              predicted.step.low, predicted.step.high, predicted.energy_j);
}

Json to_json(const Answers& answers) {
  Json json = to_json(*answers.optimized);
  for (const WhatIf& each : answers.asked)
    json["what_if"].push_back(to_json(each, *answers.optimized));
  return json;
}

void print(const Answers& answers) {
  if (!answers.optimized) return;
  std::cout << text_of(*answers.optimized);
  if (answers.front) std::cout << table_of(*answers.front);
  for (const WhatIf& each : answers.asked) std::cout << text_of(each, *answers.optimized);
}

}  // namespace

int run_plan(std::span<const char* const> arguments) {
  CLI::App app("Writes a plan: when and where a network is trained.", "regatta plan");
  PlanFlags flags;
  declare(app, flags);
  if (!parse(app, arguments)) return 0;
  const std::string out = flags.out.value_or("plan.json");
  require_writable(out);
  if (flags.json_file) require_writable(*flags.json_file);
  check_objective(app, flags);
  Answers answers;
  const PlanFile file = flags.platform ? plan_for_platform(flags, answers) : plan_here(flags);
  const Graph graph = graph_of_recipe(file.recipe, file.network);
  write_plan_file(out, file, graph);
  if (answers.front) write_front(*flags.pareto, *answers.front);
  write_json_result(flags.json_file, answers.optimized ? to_json(answers) : to_json(file, graph));
  print(file, out);
  print(answers);
  if (flags.explain) explain(file.roles);
  return 0;
}

}  // namespace regatta::app
