// `simulate`: when a plan's steps would end on a platform, and what they would cost in joules.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <set>

#include "app/command.h"
#include "app/fleet_request.h"
#include "app/placement.h"
#include "app/profiles.h"
#include "app/rank_platform.h"
#include "app/recipe_flags.h"
#include "base/error.h"
#include "base/files.h"
#include "base/version.h"
#include "models/load.h"
#include "plan/plan_file.h"
#include "platform/machine.h"
#include "platform/probe.h"
#include "sim/fleet_plan.h"
#include "trace/store.h"
#include "train/job.h"
#include "train/run_folder.h"

namespace regatta::app {
namespace {

namespace fs = std::filesystem;

struct SimulateFlags {
  std::optional<std::string> subject, platform, out, json_file, input, data;
  std::string model, batch_norm = "whole", wire_precision = "fp32";
  std::optional<std::int64_t> classes, batch;
  FleetRequest request;
  sim::SimulationOptions simulation;
};

void declare(CLI::App& app, SimulateFlags& flags) {
  app.add_option("plan", flags.subject, "a plan file, or the folder of a run to simulate again")
      ->type_name("PLAN|RUN");
  app.add_option("--model", flags.model,
                 "instead of a plan: a name or file, as regatta train has it")
      ->type_name("NAME|FILE");
  app.add_option("--platform", flags.platform,
                 "a platform's file, JSON or SimGrid's XML (default: this machine)")
      ->type_name("FILE");
  app.add_option("--steps", flags.simulation.steps, "steps to play")
      ->type_name("K")
      ->check(whole_number(1, 1000000))
      ->capture_default_str();
  app.add_option("--replicas", flags.simulation.replicas,
                 "play so often; from the second on, costs are drawn from their intervals")
      ->type_name("N")
      ->check(whole_number(1, 100000))
      ->capture_default_str();
  app.add_option("--seed", flags.simulation.seed, "of what is drawn")
      ->type_name("S")
      ->check(whole_number(0, UINT64_MAX))
      ->capture_default_str();
  app.add_option("--batch", flags.batch,
                 "images per step, of all ranks together (default: 32 for each)")
      ->type_name("N")
      ->check(whole_number(1, std::uint64_t{1} << 40));  // beyond it, short times round to 0
  app.add_option("--batch-norm", flags.batch_norm,
                 "statistics of the whole batch, for which ranks meet, or of groups of G images")
      ->type_name("whole|group:G")
      ->capture_default_str();
  add_wire_precision_flag(app, flags.wire_precision);
  app.add_option("--devices", flags.request.devices,
                 "of each node: cpu, cuda, cpu,cuda, or auto: its GPUs, or its cores where it has\n"
                 "none; with --shares speed cores beside GPUs too, if that is faster")
      ->type_name("LIST")
      ->capture_default_str();
  app.add_option("--input", flags.input, "image size (default: the model's)")->type_name("CxHxW");
  app.add_option("--classes", flags.classes, "classes (default: the model's)")
      ->type_name("N")
      ->check(whole_number(2));
  app.add_option("--data", flags.data, "what is loaded, for its measured cost")->type_name("SPEC");
  app.add_option("--workers", flags.request.workers, "cores of each rank (default: all it has)")
      ->type_name("N")
      ->check(whole_number(1, 65536));
  app.add_option("--team", flags.request.team, "threads of each worker")
      ->type_name("N")
      ->check(whole_number(1, 1024));
  app.add_option("--chunks", flags.request.chunks,
                 "cut the share of a node's cores into N chunks, or into sizes")
      ->type_name("N|SIZES");
  app.add_option("--segments", flags.request.segments,
                 "gather operators: op, block, step or a number (several ranks: block, else step)")
      ->type_name("HOW");
  app.add_option("--reduction", flags.request.reduction, "inside a rank: slots, redux, loop")
      ->type_name("HOW")
      ->capture_default_str();
  add_backward_flag(app, flags.request.backward);
  app.add_option("--ranks", flags.request.ranks,
                 "replicas of the network: the first N GPUs, or nodes without one (default: all)")
      ->type_name("N")
      ->check(whole_number(1, 1000000));
  app.add_option("--update", flags.request.update,
                 "how ranks' gradients come together: ring, tree, hierarchical, server:cpu,\n"
                 "server:gpu, replicated, chain or mpi")
      ->type_name("HOW")
      ->capture_default_str();
  app.add_option(
         "--server-sends", flags.request.server_sends,
         "a server's answers: by bucket, or after the step, as where parameters are fetched\n"
         "when the next one begins")
      ->check(CLI::IsMember({"bucket", "step"}))
      ->capture_default_str();
  app.add_option("--shares", flags.request.shares,
                 "of the ranks: equal, or speed: such that all are done together")
      ->check(CLI::IsMember({"equal", "speed"}))
      ->capture_default_str();
  app.add_option("--images-per-s", flags.request.images_per_s,
                 "what one rank was measured to do alone; costs are scaled to it")
      ->type_name("X")
      ->check(number(1e-6, 1e12));
  app.add_option("--out", flags.out, "leave a run folder with the trace and a report")
      ->type_name("RUN");
  add_json_flag(app, flags.json_file);
  app.footer(
      "Example:\n  regatta simulate --model resnet50 --batch 16 --steps 4\n"
      "  regatta simulate --model resnet50 --platform platforms/thousand.json --steps 1\n"
      "  regatta simulate runs/mine --out runs/mine-simulated");
}

Subject of_file(const std::string& name) {
  const fs::path run = fs::path(name) / "run.json";
  if (fs::exists(run)) {
    TrainJob job = job_of_run(read_json(run));
    return {std::move(job.graph), std::move(job.recipe), std::move(job.plan), job.network};
  }
  PlanFile file = read_plan_file(name, graph_of_recipe);
  return {graph_of_recipe(file.recipe, file.network), file.recipe, file.plan, file.network};
}

// The network of a run over several ranks that was recorded; none of other subjects.
std::optional<RankNetwork> network_of(const SimulateFlags& flags, const Subject& subject) {
  if (flags.platform || !flags.subject || subject.plan->nodes.size() < 2) return std::nullopt;
  if (!fs::exists(trace::store_of(*flags.subject))) return std::nullopt;
  const trace::Record record = trace::read_store(trace::store_of(*flags.subject));
  return record.metadata.contains(network_key) ? std::optional(network_in(record)) : std::nullopt;
}

// Throws InputError that names the flags given that have no say beside a plan.
void require_nothing_planned(const CLI::App& app, const std::string& plan) {
  const std::set<std::string> of_plan{
      "--model",     "--batch",    "--batch-norm", "--wire-precision", "--devices", "--input",
      "--classes",   "--data",     "--workers",    "--team",           "--chunks",  "--segments",
      "--reduction", "--backward", "--ranks",      "--update",         "--shares"};
  const std::string refused =
      given_flags(app, [&](const std::string& name) { return of_plan.contains(name); });
  if (!refused.empty())
    throw InputError("'" + plan + "' says itself what it trains and how: drop " + refused +
                     ", or drop the plan and name a --model");
}

Subject subject_of(const CLI::App& app, const SimulateFlags& flags) {
  if (flags.subject) {
    require_nothing_planned(app, *flags.subject);
    return of_file(*flags.subject);
  }
  if (flags.model.empty())
    throw InputError("simulate what? name a plan, the folder of a run, or a --model");
  ModelOptions adapt;
  if (flags.input) adapt.input = Shape::parse(*flags.input);
  adapt.classes = flags.classes;
  const LoadedModel model = load_model(flags.model, adapt);
  Subject subject;
  Recipe& recipe = subject.recipe;
  recipe.batch_norm_group = batch_norm_group_named("--batch-norm", flags.batch_norm);
  recipe.wire_precision = wire_precision_named(flags.wire_precision);
  subject.graph = graph_for(recipe, model.graph);
  recipe.model = flags.model;
  recipe.input = subject.graph.node(subject.graph.input()).shape;
  recipe.classes = subject.graph.classes();
  recipe.data = absolute_spec(flags.data.value_or("synth"));
  recipe.batch = flags.batch.value_or(0);  // of the platform's groups, when it is known
  return subject;
}

// --- results -------------------------------------------------------------------------------------

struct GroupRow {
  std::string node, group;
  int ranks = 0, workers = 0;
  double busy_s = 0;  // mean over ranks
  std::size_t peak_bytes = 0, room = 0;
};

// Ranks of one kind together: nobody reads a thousand rows.
std::vector<GroupRow> rows_of(const sim::PreparedFleet& fleet, const sim::Simulated& made) {
  std::map<std::pair<int, std::size_t>, GroupRow> rows;
  for (const sim::GroupUse& use : made.groups) {
    const int kind = fleet.fleet().ranks[static_cast<std::size_t>(use.rank)].kind;
    GroupRow& row = rows[{kind, use.pool}];
    if (row.ranks++ == 0) {
      row.node = use.node;
      row.group = use.group;
      row.workers = use.workers;
      if (const auto memory = fleet.memory(kind); use.pool < memory.size()) {
        row.peak_bytes = memory[use.pool].bytes;
        row.room = memory[use.pool].room;
      }
    }
    row.busy_s += use.busy_s;
  }
  std::vector<GroupRow> all;
  for (auto& [key, row] : rows) {
    row.busy_s /= row.ranks;
    all.push_back(row);
  }
  return all;
}

// By watts of the platform, however these were found: nobody counted these joules.
Json energy_json(const std::vector<sim::GroupEnergy>& rows) {
  Json groups = Json::array();
  for (const sim::GroupEnergy& row : rows)
    groups.push_back({{"node", row.node},
                      {"group", row.group},
                      {"devices", row.devices},
                      {"idle_j", row.idle_j},
                      {"tasks_j", row.tasks_j},
                      {"source", "modelled"}});
  return {{"source", "modelled"}, {"groups", groups}};
}

Json spread_of(std::vector<double> values) {
  std::ranges::sort(values);
  const auto at = [&](double share) {
    const double last = static_cast<double>(values.size() - 1);
    return values[static_cast<std::size_t>(std::lround(share * last))];
  };
  return {{"median", at(0.5)}, {"low", at(0.025)}, {"high", at(0.975)}};
}

void print(const std::vector<GroupRow>& rows, const sim::PreparedFleet& fleet,
           const sim::Simulated& made) {
  const double step = made.step_s.front();
  std::printf("step %.6g s, %.4g images/s, %.4g J a step, modelled%s\n", step,
              static_cast<double>(fleet.batch()) / step, made.energy_j.front(),
              fleet.estimated() ? " (costs are estimates)" : "");
  if (made.step_s.size() > 1) {
    const Json spread = spread_of(made.step_s);
    std::printf("%zu replicas: median %.6g s, 95%% between %.6g and %.6g s\n", made.step_s.size(),
                spread["median"].get<double>(), spread["low"].get<double>(),
                spread["high"].get<double>());
  }
  std::printf("%-16s %-12s %6s %8s %6s %10s\n", "node", "group", "ranks", "workers", "busy",
              "memory");
  for (const GroupRow& row : rows)
    std::printf("%-16s %-12s %6d %8d %5.1f%% %7.0f MB%s\n", row.node.c_str(), row.group.c_str(),
                row.ranks, row.workers, 100 * row.busy_s / step / row.workers,
                static_cast<double>(row.peak_bytes) / 1e6,
                row.peak_bytes > row.room && row.room > 0 ? " (more than it has)" : "");
}

// `platform_folder`: where the profiles are that the platform names; empty: it names none.
void leave_run(const SimulateFlags& flags, const Subject& subject, const sim::PreparedFleet& fleet,
               const fs::path& platform_folder, sim::Simulated& made) {
  const std::string& out = *flags.out;
  NewRunFolder fresh{out};
  const fs::path& folder = fresh.path();
  Json run{{"recipe", subject.recipe.to_json()},
           {"plan", to_json(*subject.plan, subject.graph)},
           {"machine", {{"simulated", fleet.fleet().platform.name}}},
           {"platform", fleet.fleet().platform.to_json()}};
  if (!flags.subject) run["request"] = to_json(flags.request);
  if (!platform_folder.empty()) run["platform_folder"] = platform_folder.string();
  if (subject.network) run["network"] = *subject.network;
  made.record.metadata[trace::samples_key] = std::to_string(fleet.batch());
  made.record.metadata["regatta"] = std::string(version);
  made.record.metadata["recipe"] = subject.recipe.to_json().dump(2);
  made.record.metadata["plan"] = run["plan"].dump(2);
  write_file(folder / "run.json", run.dump(2) + "\n");
  trace::write_store(folder / trace::store_name, made.record);
  trace::write_analysis(folder / trace::store_name, made.record);
  fresh.keep();
  leave_report(folder);
  std::printf("run folder %s; regatta trace, doctor and report read it\n", out.c_str());
}

}  // namespace

int run_simulate(std::span<const char* const> arguments) {
  CLI::App app("Plays steps of a plan on a platform before anyone runs them.", "regatta simulate");
  SimulateFlags flags;
  declare(app, flags);
  if (!parse(app, arguments)) return 0;
  if (flags.json_file) require_writable(*flags.json_file);
  // A folder that cannot be made is refused before minutes of simulation; the one made here is
  // removed again.
  if (flags.out) const NewRunFolder possible(*flags.out);
  const auto begin = std::chrono::steady_clock::now();
  Subject subject = subject_of(app, flags);
  if (!flags.platform) flags.request.cpus = available_cpus();
  const std::optional<RankNetwork> network = network_of(flags, subject);
  const Platform platform = flags.platform ? read_platform(*flags.platform)
                            : network      ? platform_of_ranks(*subject.plan, *network)
                                           : this_machine(own_profile() ? here : "");
  const fs::path platform_folder = flags.platform ? fs::absolute(*flags.platform).parent_path()
                                   : network      ? fs::absolute(*flags.subject)
                                                  : fs::path();
  if (!subject.plan) {
    subject.recipe.batch = batch_for(subject, platform, flags.request);
    require_groups(subject.recipe, subject.graph, 0);
    subject.plan = plan_for(subject, platform, platform_folder, flags.request);
  }
  const sim::PreparedFleet fleet = fleet_for(subject, platform, platform_folder, flags.request);
  // As the executor: with a worker on every core, the thread that submits has to share one.
  if (!flags.platform)
    flags.simulation.crowded =
        fleet.threads() >= (network ? network->cpus.front() : available_cpus());
  sim::Simulated made = sim::simulate(fleet.fleet(), flags.simulation);
  const double wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const std::vector<GroupRow> rows = rows_of(fleet, made);
  print(rows, fleet, made);
  if (flags.out) leave_run(flags, subject, fleet, platform_folder, made);
  if (!flags.json_file) return 0;
  Json result{{"step_s", made.step_s.front()},
              {"energy_j", made.energy_j.front()},
              {"energy", energy_json(made.energy)},
              {"images_per_s", static_cast<double>(fleet.batch()) / made.step_s.front()},
              {"batch", fleet.batch()},
              {"ranks", fleet.fleet().ranks.size()},
              {"update", node_update_name(fleet.fleet().update)},
              {"platform", fleet.fleet().platform.name},
              {"estimate", fleet.estimated()},
              {"exchanged_bytes", made.exchanged_bytes},
              {"simulated_tasks", made.tasks * flags.simulation.replicas},
              {"wall_s", wall},
              {"groups", Json::array()}};
  for (const GroupRow& row : rows)
    result["groups"].push_back({{"node", row.node},
                                {"group", row.group},
                                {"ranks", row.ranks},
                                {"workers", row.workers},
                                {"busy_s", row.busy_s},
                                {"peak_bytes", row.peak_bytes}});
  if (made.step_s.size() > 1)
    result["replicas"] = {{"step_s", made.step_s},
                          {"energy_j", made.energy_j},
                          {"step", spread_of(made.step_s)},
                          {"energy", spread_of(made.energy_j)}};
  write_json_result(flags.json_file, result);
  return 0;
}

}  // namespace regatta::app
