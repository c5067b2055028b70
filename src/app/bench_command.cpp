#include <cmath>
#include <filesystem>
#include <iostream>

#include "app/bench_ceiling.h"
#include "app/bench_cell.h"
#include "app/bench_fidelity.h"
#include "app/bench_granularity.h"
#include "app/bench_ranks.h"
#include "app/bench_runs.h"
#include "app/bench_runtime.h"
#include "app/bench_unequal.h"
#include "app/command.h"
#include "app/lists.h"
#include "app/recipe_flags.h"
#include "base/error.h"
#include "base/files.h"
#include "plan/make_plan.h"
#include "plan/shares.h"
#include "platform/disturbance.h"
#include "platform/machine.h"
#include "report/text.h"
#include "trace/analysis.h"
#include "trace/store.h"
#include "train/job.h"

namespace regatta::app {
namespace {

namespace fs = std::filesystem;

struct ScalingFlags {
  CellOptions cell;
  std::string workers, batches = "64";
  std::string inputs, schedulers;  // empty: the model's own, the default
  std::string ranks, hosts, wire_precision = "fp32";
  std::size_t repeats = 3;
  std::uint64_t seed = 1;
  std::optional<std::string> json_file, csv_file, plot_file, trace_folder;
};

// Flags that scaling and cell share.
void declare_cell(CLI::App& app, CellOptions& cell) {
  app.add_option("--model", cell.model, "a name that regatta models lists")
      ->required()
      ->type_name("NAME");
  app.add_option("--data", cell.data, "data instead of made-up images")->type_name("SPEC");
  app.add_option("--devices", cell.devices, "cpu, cuda or cpu,cuda")
      ->type_name("LIST")
      ->capture_default_str();
  app.add_option("--shares", cell.shares,
                 "samples for each of --devices (default: by what each reaches alone)")
      ->type_name("SIZES");
  app.add_option("--precision", cell.precision, "fp32, bf16, or on GPUs tf32")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--segments", cell.segments, "as regatta train takes it")->type_name("HOW");
  app.add_option("--chunks", cell.chunks, "as regatta train takes it")->type_name("N|SIZES");
  app.add_option("--team", cell.team, "as regatta train takes it")
      ->type_name("N")
      ->check(whole_number(1, most_workers));
  app.add_option("--granularity", cell.granularity, "auto or fixed, as regatta train takes it")
      ->type_name("KIND")
      ->capture_default_str();
  app.add_option("--reduction", cell.reduction, "slots, redux or loop")
      ->type_name("HOW")
      ->capture_default_str();
  app.add_option("--steps", cell.steps, "steps of each run, instead of --seconds")
      ->type_name("N")
      ->check(whole_number(1));
  app.add_option("--seconds", cell.seconds, "length of each run")
      ->type_name("X")
      ->check(number(0.0, 86400.0))
      ->capture_default_str();
}

void declare_one(CLI::App& app, CellOptions& cell, std::optional<std::string>& json_file) {
  declare_cell(app, cell);
  app.add_option("--batch", cell.batch, "images per step")
      ->type_name("N")
      ->check(whole_number(1))
      ->capture_default_str();
  app.add_option("--workers", cell.workers, "CPU workers")
      ->type_name("N")
      ->check(whole_number(1, most_workers))
      ->capture_default_str();
  app.add_option("--input", cell.input, "image size")->type_name("CxHxW");
  app.add_option("--scheduler", cell.scheduler, "StarPU scheduler")->type_name("NAME");
  add_json_flag(app, json_file);
  app.footer("Example:\n  regatta bench cell --model tiny --workers 2 --steps 200");
}

void declare_scaling(CLI::App& app, ScalingFlags& flags) {
  declare_cell(app, flags.cell);
  app.add_option("--workers", flags.workers,
                 "CPU workers of each cell (default: 1, 2, 4, ... and the CPUs there are)")
      ->type_name("LIST");
  app.add_option("--ranks", flags.ranks,
                 "instead of --workers: numbers of processes, which train one network by mpirun")
      ->type_name("LIST")
      ->excludes("--workers");
  app.add_option("--hosts", flags.hosts,
                 "of --ranks: machines with a rank each (default: this one)")
      ->type_name("LIST")
      ->needs("--ranks");
  add_wire_precision_flag(app, flags.wire_precision)->needs("--ranks");
  app.add_option("--batch", flags.batches, "images per step, several after commas")
      ->type_name("LIST")
      ->capture_default_str();
  app.add_option("--input", flags.inputs, "image sizes, several after commas")
      ->type_name("CxHxW,...");
  app.add_option("--scheduler", flags.schedulers, "StarPU schedulers, several after commas")
      ->type_name("LIST");
  app.add_option("--repeats", flags.repeats, "runs of each cell, taking turns")
      ->type_name("N")
      ->check(whole_number(1, 1000))
      ->capture_default_str();
  app.add_option("--seed", flags.seed, "of the order of runs")
      ->type_name("N")
      ->check(whole_number(0, UINT64_MAX))
      ->capture_default_str();
  app.add_option("--trace", flags.trace_folder,
                 "also run each cell once with --trace, into FOLDER, and say why workers were idle")
      ->type_name("FOLDER");
  app.add_option("--csv", flags.csv_file, "write the table to FILE")->type_name("FILE");
  app.add_option("--plot", flags.plot_file, "write charts to FILE, a page that stands alone")
      ->type_name("FILE.html");
  add_json_flag(app, flags.json_file);
  app.footer(
      "Example:\n  regatta bench scaling --model tiny --workers 1,2,4 --batch 128 --plot "
      "scaling.html");
}

std::vector<std::int64_t> powers_of_two(int last) {
  std::vector<std::int64_t> counts;
  for (int n = 1; n < last; n *= 2) counts.push_back(n);
  counts.push_back(last);
  return counts;
}

// The cells, in the order of their flags.
std::vector<CellOptions> cells_of(const ScalingFlags& flags) {
  std::vector<std::int64_t> workers = flags.workers.empty()
                                          ? powers_of_two(std::min(available_cpus(), most_workers))
                                          : parse_sizes("--workers", flags.workers);
  std::ranges::sort(workers);
  if (workers.front() < 1 || workers.back() > most_workers)
    throw InputError("--workers " + flags.workers + ": use 1 to " + std::to_string(most_workers));
  const auto or_one = [](const std::string& text) {
    std::vector<std::optional<std::string>> choices;
    for (const std::string& each : listed(text)) choices.emplace_back(each);
    if (choices.empty()) choices.emplace_back();
    return choices;
  };
  std::vector<CellOptions> cells;
  for (const auto& scheduler : or_one(flags.schedulers))
    for (const auto& input : or_one(flags.inputs))
      for (const std::int64_t batch : parse_sizes("--batch", flags.batches))
        for (const std::int64_t count : workers) {
          CellOptions cell = flags.cell;
          cell.scheduler = scheduler;
          cell.input = input;
          cell.input = input_of(cell);
          cell.batch = batch;
          cell.workers = static_cast<int>(count);
          if (batch < 1) throw InputError("--batch " + flags.batches + ": use 1 or more");
          cells.push_back(std::move(cell));
        }
  return cells;
}

// Shares of all workers' time, by cause.
Json idle_causes_of(const fs::path& run) {
  const trace::Record record = trace::read_store(trace::store_of(run));
  const trace::Analysis found = trace::analyse(record, trace::whole_window(record));
  const double all = trace::seconds(found.wall()) * static_cast<double>(record.workers.size());
  Json causes = Json::object();
  for (std::size_t c = 0; c < trace::cause_count; ++c)
    if (found.causes[c] > 0 && all > 0)
      causes[std::string(trace::cause_name(static_cast<trace::Cause>(c)))] =
          trace::seconds(found.causes[c]) / all;
  return causes;
}

std::string folder_of(const CellOptions& cell) {
  return *cell.input + "-batch" + std::to_string(cell.batch) + "-" +
         cell.scheduler.value_or("regatta") + "-workers" + std::to_string(cell.workers);
}

// Every device for itself, on the whole batch.
std::vector<double> rates_alone(const BenchRuns& runs, const CellOptions& cell) {
  std::vector<double> rates;
  for (const std::string& device : listed(cell.devices)) {
    CellOptions alone = cell;
    alone.devices = device;
    alone.shares.reset();
    rates.push_back(throughput_of(runs.run(alone)));
  }
  return rates;
}

// In proportion to what each reaches alone, as --shares takes it.
std::string shares_text(const std::vector<double>& rates, std::int64_t batch) {
  std::string text;
  for (const std::int64_t share : shares_by_speed(rates, batch))
    text += (text.empty() ? "" : ",") + std::to_string(share);
  return text;
}

std::string name_of(const CellOptions& cell) {
  return *cell.input + ", batch " + std::to_string(cell.batch) +
         (cell.scheduler ? ", " + *cell.scheduler : "") + ", " + std::to_string(cell.workers) +
         (cell.workers == 1 ? " worker" : " workers");
}

ScalingResult measure(const ScalingFlags& flags, const std::vector<CellOptions>& cells) {
  const BenchRuns runs;
  const bool mixed = listed(flags.cell.devices).size() > 1;
  std::vector<ScalingCell> measured;
  for (const CellOptions& cell : cells)
    measured.push_back(
        {cell.scheduler.value_or("regatta"), *cell.input, cell.batch, cell.workers, {}, {}, {}});
  std::vector<std::vector<std::vector<double>>> alone(cells.size());  // cell, repeat, device
  const std::vector<Turn> turns = interleaved(cells.size(), flags.repeats, flags.seed);
  for (std::size_t i = 0; i < turns.size(); ++i) {
    CellOptions cell = cells[turns[i].cell];
    if (mixed) {
      alone[turns[i].cell].push_back(rates_alone(runs, cell));
      if (!cell.shares) cell.shares = shares_text(alone[turns[i].cell].back(), cell.batch);
    }
    const ScalingSample sample = runs.run(cell);
    const std::string disturbed = disturbed_text(sample.taken_by_others);
    std::cerr << formatted("run %zu of %zu: %s: %.1f images/s", i + 1, turns.size(),
                           name_of(cell).c_str(), throughput_of(sample))
              << (disturbed.empty() ? "" : ", " + disturbed) << std::endl;
    measured[turns[i].cell].samples.push_back(sample);
  }
  for (std::size_t c = 0; mixed && c < cells.size(); ++c)
    for (std::size_t device = 0; device < alone[c].front().size(); ++device) {
      std::vector<double> rates;
      for (const auto& repeat : alone[c]) rates.push_back(repeat[device]);
      measured[c].groups_alone.push_back(median_of(rates));
    }
  // After the measurement, so that it costs it nothing.
  for (std::size_t c = 0; flags.trace_folder && c < cells.size(); ++c) {
    const fs::path into = fs::path(*flags.trace_folder) / folder_of(cells[c]);
    const std::size_t steps = measured[c].samples.front().step_seconds.size();
    runs.trace(cells[c], std::clamp<std::size_t>(steps, 12, 40), TraceDepth::tasks, into);
    measured[c].idle_causes = idle_causes_of(into);
    std::cerr << "traced " << into.string() << std::endl;
  }
  return analyse_scaling(flags.cell.model, std::move(measured));
}

int run_scaling_of_ranks(const ScalingFlags& flags) {
  if (flags.csv_file || flags.plot_file || flags.trace_folder)
    throw InputError("--ranks has no --csv, --plot or --trace; --json has all figures");
  RankScalingFlags ranks{flags.cell,    flags.ranks,          flags.hosts,
                         flags.repeats, flags.wire_precision, flags.json_file};
  const auto one_of = [](const std::string& flag, const std::string& text) {
    const std::vector<std::string> values = listed(text);
    if (values.size() > 1) throw InputError("with --ranks give one " + flag);
    return values.empty() ? std::nullopt : std::optional(values.front());
  };
  ranks.cell.input = one_of("--input", flags.inputs);
  ranks.cell.scheduler = one_of("--scheduler", flags.schedulers);
  const std::vector<std::int64_t> batches = parse_sizes("--batch", flags.batches);
  if (batches.size() != 1) throw InputError("with --ranks give one --batch");
  ranks.cell.batch = batches.front();
  ranks.cell.input = input_of(ranks.cell);
  return run_rank_scaling(ranks);
}

int run_scaling(const ScalingFlags& flags) {
  if (!flags.ranks.empty()) return run_scaling_of_ranks(flags);
  const std::vector<CellOptions> cells = cells_of(flags);
  for (const auto* file : {&flags.json_file, &flags.csv_file, &flags.plot_file})
    if (*file) require_writable(**file);
  const ScalingResult result = measure(flags, cells);
  std::cout << scaling_table(result);
  const Json machine{{"host", host_name()}, {"cpu", cpu_name()}, {"cpus", available_cpus()}};
  Json json = scaling_json(result);
  json["machine"] = machine;
  write_json_result(flags.json_file, json);
  if (flags.csv_file) write_file(*flags.csv_file, scaling_csv(result));
  if (flags.plot_file) write_file(*flags.plot_file, scaling_page(result, machine).html());
  return 0;
}

}  // namespace

int run_bench(std::span<const char* const> arguments) {
  CLI::App app(
      "Measures speed: how it grows with workers, what task sizes do to it, and how well it is "
      "predicted.",
      "regatta bench");
  app.require_subcommand(1);
  ScalingFlags flags;
  CLI::App* scaling =
      app.add_subcommand("scaling", "throughput, speedup and efficiency over numbers of workers");
  declare_scaling(*scaling, flags);
  CellOptions cell;
  std::optional<std::string> cell_json;
  CLI::App* one = app.add_subcommand("cell", "one run, in this process: the time of every step");
  declare_one(*one, cell, cell_json);
  GranularityFlags granularity_flags;
  CLI::App* granularity =
      app.add_subcommand("granularity", "the automatic choice of task sizes against fixed ones");
  declare_granularity(*granularity, granularity_flags);
  FidelityFlags fidelity_flags, placement_flags = placement_defaults();
  CLI::App* fidelity = app.add_subcommand("fidelity", "simulated step times against measured ones");
  declare_fidelity(*fidelity, fidelity_flags);
  CLI::App* placement = app.add_subcommand(
      "placement", "dynamic, hybrid and static placement, and their predictions");
  declare_placement(*placement, placement_flags);
  UnequalFlags unequal_flags;
  CLI::App* unequal = app.add_subcommand(
      "unequal", "workers made unequal, with equal shares and in proportion to speed");
  declare_unequal(*unequal, unequal_flags);
  RuntimeFlags runtime_flags;
  CLI::App* runtime = app.add_subcommand(
      "runtime", "tasks per second that the runtime carries out, with kernels that do nothing");
  declare_runtime(*runtime, runtime_flags);
  CeilingFlags ceiling_flags;
  CLI::App* ceiling = app.add_subcommand(
      "ceiling", "what the cores could reach with a model, what they do reach, by operator");
  declare_ceiling(*ceiling, ceiling_flags);
  app.footer(
      "Example:\n  regatta bench scaling --model tiny --workers 1,2,4 --batch 128 --plot "
      "scaling.html");
  if (!parse(app, arguments)) return 0;
  if (granularity->parsed()) return run_granularity(granularity_flags);
  if (scaling->parsed()) return run_scaling(flags);
  if (fidelity->parsed()) return run_fidelity(fidelity_flags);
  if (placement->parsed()) return run_placement(placement_flags);
  if (unequal->parsed()) return run_unequal(unequal_flags);
  if (runtime->parsed()) return run_runtime(runtime_flags);
  if (ceiling->parsed()) return run_ceiling(ceiling_flags);

  if (cell_json) require_writable(*cell_json);
  const ScalingSample sample = run_cell(cell);
  std::printf("%.1f images/s\n", throughput_of(sample));
  if (const std::string text = disturbed_text(sample.taken_by_others); !text.empty())
    std::printf("%s\n", text.c_str());
  write_json_result(cell_json, {{"batch", sample.images_per_step},
                                {"images_per_s", throughput_of(sample)},
                                {"taken_by_others",
                                 sample.taken_by_others ? Json(*sample.taken_by_others) : Json()},
                                {"step_s", sample.step_seconds}});
  return 0;
}

}  // namespace regatta::app
