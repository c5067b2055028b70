#include "app/bench_fidelity.h"

#include <algorithm>
#include <chrono>
#include <iostream>

#include "app/command.h"
#include "app/lists.h"
#include "app/trial.h"
#include "base/error.h"
#include "base/files.h"
#include "base/shape.h"
#include "platform/machine.h"
#include "report/fidelity.h"
#include "report/scaling.h"
#include "tune/plan_job.h"

namespace regatta::app {
namespace {

using Clock = std::chrono::steady_clock;

TrialSetting setting_of(const FidelityFlags& flags, const std::string& model, int workers) {
  TrialSetting setting{model, "3x64x64", 32, workers};
  if (model == "tiny" || model == "lenet5") setting = {model, "1x28x28", 128, workers};
  if (model == "mobilenet_v2") setting = {model, "3x96x96", 16, workers};
  if (model == "resnet50") setting = {model, "3x128x128", 8, workers};
  if (flags.input) {
    if (Shape::parse(*flags.input).rank() != 3)
      throw InputError("--input " + *flags.input + ": write CxHxW, such as 3x64x64");
    setting.input = *flags.input;
  }
  if (flags.batch) setting.batch = *flags.batch;
  return setting;
}

struct Granularity {
  const char* name;
  const char* segments;
  int chunks_per_worker;
};
constexpr Granularity granularities[]{
    {"step x W", "step", 1}, {"step x 2W", "step", 2}, {"block x W", "block", 1}};

struct Cell {
  FidelityCell result;
  TrainJob job;
  Measured last = {};
};

// The cells of one model at one number of workers.
class Bench {
 public:
  explicit Bench(const FidelityFlags& flags) : flags_(flags) {}

  std::vector<FidelityCell> run(std::span<const Granularity> grains) {
    const std::vector<std::string> models = listed_models("--models", flags_.models);
    const std::vector<std::int64_t> counts = parse_sizes("--workers", flags_.workers);
    if (std::ranges::min(counts) < 1 || std::ranges::max(counts) > most_workers)
      throw InputError("--workers " + flags_.workers + ": use 1 to " +
                       std::to_string(most_workers));
    for (const std::string& model : models)
      for (const std::int64_t workers : counts) {
        const TrialSetting setting = setting_of(flags_, model, static_cast<int>(workers));
        run(setting, grains);
        std::cerr << model << " at " << workers << " worker" << (workers == 1 ? "" : "s")
                  << ": done after " << static_cast<int>(60 * minutes()) << " s\n";
      }
    return std::move(results_);
  }

 private:
  void run(const TrialSetting& setting, std::span<const Granularity> grains) {
    std::vector<Cell> cells = cells_of(setting, grains);
    const bool late = minutes() >= flags_.budget;
    if (!late) {
      measure_all(setting, cells);
      for (Cell& cell : cells) {
        const Predicted predicted = predict(cell.job);
        cell.result.simulated = predicted.step_s;
        cell.result.simulated_j = predicted.energy_j;
        if (flags_.why) explain(cell, predicted);
      }
    }
    for (Cell& cell : cells) {
      if (late) cell.result.not_run = "the budget of minutes is spent";
      results_.push_back(std::move(cell.result));
    }
  }

  // In every round first what work costs, then the cells: both see the same hour of the machine. Of
  // what the cells take the costs learn nothing, so what is simulated by them is a prediction.
  void measure_all(const TrialSetting& setting, std::vector<Cell>& cells) {
    const auto profile = std::make_shared<Profile>();
    std::size_t rounds = 0;
    for (const Turn& turn : interleaved(cells.size(), flags_.rounds, flags_.seed)) {
      if (turn.repeat == rounds) {
        if (rounds > 0 && minutes() >= flags_.budget) break;
        CalibrationOptions options;
        options.workers = setting.workers;
        options.budget = Seconds(flags_.calibrate);
        // In these plans a worker is alone only at the end of a step, on a chunk of this size.
        options.most_alone = (setting.batch - 1) / setting.workers + 1;
        learn_costs(*profile, cells.front().job, options);
        if (rounds++ == 0) place_all(cells, profile);
      }
      Cell& cell = cells[turn.cell];
      cell.last = measure(cell.job, cell.job.plan, Seconds(flags_.seconds));
      cell.result.measured.push_back(cell.last.step_s);
      cell.result.measured_j.push_back(cell.last.energy_j);
      if (cell.last.taken_by_others) cell.result.taken.push_back(*cell.last.taken_by_others);
    }
  }

  // By one more turn, which looks at every task: that makes submission longer, so what it takes is
  // of the last turn that did not.
  void explain(Cell& cell, const Predicted& predicted) const {
    const Measured measured = measure(cell.job, cell.job.plan, Seconds(flags_.seconds), true);
    cell.result.kernels = {cell.last.kernels_s, predicted.kernels_s};
    cell.result.submission = {cell.last.submission_s, predicted.submission_s};
    for (const auto& [phase, seconds] : by_phase(cell.job, measured.tasks))
      cell.result.phases[phase].measured = seconds;
    for (const auto& [phase, seconds] : by_phase(cell.job, predicted.tasks))
      cell.result.phases[phase].simulated = seconds;
  }

  static void place_all(std::vector<Cell>& cells, const std::shared_ptr<const Profile>& profile) {
    for (Cell& cell : cells) {
      cell.job.profile = profile;
      place_tasks(cell.job, placement_named(cell.result.placement));
    }
  }

  std::vector<Cell> cells_of(const TrialSetting& setting, std::span<const Granularity> grains) {
    std::vector<Cell> cells;
    for (const Granularity& grain : grains)
      for (const std::string& placement : listed(flags_.placements)) {
        PlanOptions plan;
        plan.segments = grain.segments;
        plan.chunks = {std::min<std::int64_t>(
            setting.batch, std::int64_t{grain.chunks_per_worker} * setting.workers)};
        Cell cell;
        cell.result.model = setting.model;
        cell.result.input = setting.input;
        cell.result.batch = setting.batch;
        cell.result.workers = setting.workers;
        cell.result.granularity = grain.name;
        cell.result.placement = placement;
        cell.job = trial_job(setting, plan);
        cells.push_back(std::move(cell));
      }
    return cells;
  }

  double minutes() const {
    return std::chrono::duration<double>(Clock::now() - begin_).count() / 60;
  }

  const FidelityFlags& flags_;
  Clock::time_point begin_ = Clock::now();
  std::vector<FidelityCell> results_;
};

void declare_common(CLI::App& app, FidelityFlags& flags) {
  app.add_option("--input", flags.input, "image size, instead of what is usual for a model")
      ->type_name("CxHxW");
  app.add_option("--batch", flags.batch, "images per step, likewise")
      ->type_name("N")
      ->check(whole_number(1));
  app.add_option("--calibrate", flags.calibrate,
                 "seconds of measuring costs, before each round; more if steps are long")
      ->type_name("X")
      ->check(number(0.0, 3600.0))
      ->capture_default_str();
  app.add_option("--seconds", flags.seconds,
                 "length of a measurement, when it has settled; three steps at least")
      ->type_name("X")
      ->check(number(0.0, 3600.0))
      ->capture_default_str();
  app.add_option("--rounds", flags.rounds, "measurements of each cell, taking turns")
      ->type_name("N")
      ->check(whole_number(1, 100))
      ->capture_default_str();
  app.add_option("--budget", flags.budget, "start no further cell after so many minutes")
      ->type_name("MINUTES")
      ->check(number(0.0, 10000.0))
      ->capture_default_str();
  app.add_option("--seed", flags.seed, "of the order of turns")
      ->type_name("N")
      ->check(whole_number(0, UINT64_MAX))
      ->capture_default_str();
  app.add_option("--csv", flags.csv_file, "write all measurements to FILE")->type_name("FILE");
  add_json_flag(app, flags.json_file);
}

void write_results(const FidelityFlags& flags, const std::vector<FidelityCell>& cells) {
  Json json = fidelity_json(cells);
  json["machine"] = {{"host", host_name()}, {"cpu", cpu_name()}, {"cpus", available_cpus()}};
  write_json_result(flags.json_file, json);
  if (flags.csv_file) write_file(*flags.csv_file, fidelity_csv(cells));
}

void require_files(const FidelityFlags& flags) {
  for (const auto* file : {&flags.json_file, &flags.csv_file})
    if (*file) require_writable(**file);
}

}  // namespace

void declare_fidelity(CLI::App& app, FidelityFlags& flags) {
  app.add_option("--models,--model", flags.models, "names that regatta models lists, after commas")
      ->type_name("LIST")
      ->capture_default_str();
  app.add_option("--workers", flags.workers, "numbers of CPU workers, after commas")
      ->type_name("LIST")
      ->capture_default_str();
  declare_common(app, flags);
  app.add_flag("--why", flags.why, "also tell where simulated and measured seconds differ");
  app.footer(
      "Example:\n  regatta bench fidelity --models tiny,resnet18 --workers 1,2 --json result.json");
}

int run_fidelity(const FidelityFlags& flags) {
  require_files(flags);
  const std::vector<FidelityCell> cells = Bench(flags).run(granularities);
  std::cout << fidelity_table(cells) << fidelity_reasons(cells);
  write_results(flags, cells);
  return 0;
}

FidelityFlags placement_defaults() {
  FidelityFlags flags;
  flags.models = "resnet18";
  flags.workers = std::to_string(std::min(default_workers(), most_workers));
  flags.placements = "dynamic,hybrid,static";
  flags.rounds = 9;
  return flags;
}

void declare_placement(CLI::App& app, FidelityFlags& flags) {
  app.add_option("--model,--models", flags.models, "a name that regatta models lists")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--workers", flags.workers, "CPU workers")->type_name("N")->capture_default_str();
  declare_common(app, flags);
  app.footer("Example:\n  regatta bench placement --model resnet18 --workers 2 --json result.json");
}

int run_placement(const FidelityFlags& flags) {
  require_files(flags);
  const std::vector<FidelityCell> cells = Bench(flags).run(granularities);
  std::cout << placement_table(cells);
  write_results(flags, cells);
  return 0;
}

}  // namespace regatta::app
