#include "app/bench_ranks.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <regex>

#include "app/command.h"
#include "app/compare_ranks.h"
#include "app/lists.h"
#include "app/mpirun_defaults.h"
#include "base/error.h"
#include "base/files.h"
#include "base/program.h"
#include "base/scratch_folder.h"
#include "platform/disturbance.h"
#include "platform/machine.h"
#include "report/statistics.h"
#include "report/text.h"
#include "trace/store.h"
#include "train/run_folder.h"
#include "transport/launcher.h"
#include "tune/stored_profile.h"

namespace regatta::app {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

struct Row {
  int ranks = 1;
  // Images a second, by repeat; `alone` is the sum over ranks that train without exchange.
  std::vector<double> reached = {}, alone = {};
  std::vector<double> taken = {};  // by others, of the first rank's CPU time, where it is known
  std::optional<double> exchange_s = {}, exchange_bound_s = {}, simulated_exchange_s = {};
};

class RankRuns {
 public:
  explicit RankRuns(const RankScalingFlags& flags) : flags_(flags), hosts_(listed(flags.hosts)) {}

  // Images a second of all processes together that train side by side, each on its part of the
  // batch, without exchange.
  double alone(int ranks) const {
    CellOptions cell = cell_of(ranks);
    cell.batch = std::max<std::int64_t>(1, cell.batch / ranks);
    Words words = by_mpirun(ranks);
    words.insert(words.end(), {"-x", no_rank, program_, "bench", "cell"});
    append(words, flags_for(cell));
    append(words, {"--seconds", std::to_string(cell.seconds)});
    if (cell.steps) append(words, {"--steps", std::to_string(*cell.steps)});
    const std::string said = run(words);
    double sum = 0;
    int found = 0;
    const std::regex rate("(^|\n)([0-9.]+) images/s");
    for (std::sregex_iterator each(said.begin(), said.end(), rate), end; each != end; ++each) {
      sum += std::stod((*each)[2]);
      ++found;
    }
    if (found != ranks)
      throw InputError("of " + std::to_string(ranks) + " processes " + std::to_string(found) +
                       " told their speed: " + said);
    return sum;
  }

  // Adds what a run over the ranks reaches. `alone`, images a second without exchange, tells how
  // many steps fill the wanted seconds.
  void together(Row& row, double alone) const {
    const CellOptions cell = cell_of(row.ranks);
    const auto steps = cell.steps.value_or(std::max<std::int64_t>(
        20, static_cast<std::int64_t>(cell.seconds * alone / static_cast<double>(cell.batch))));
    const fs::path result = scratch_.path() / "result.json";
    train(row.ranks, {"--steps", std::to_string(steps), "--json", result.string()});
    const Json json = read_json(result);
    row.reached.push_back(json.at("images_per_s"));
    if (const Json& taken = json.at("taken_by_others"); taken.is_number())
      row.taken.push_back(taken);
  }

  // Sets the row's seconds of exchange in a step: of a recorded run, simulated, and the bound.
  void exchange(Row& row) const {
    const fs::path folder = train(row.ranks, {"--steps", "30", "--trace"});
    TrainJob job = read_run_json(folder).job;
    job.profile = stored_profile();
    const trace::Record record = trace::read_store(trace::store_of(folder));
    const Prediction made = predict_ranks(job, folder, record, 18, 1);
    const auto time_in = [](const trace::Record& each) -> std::optional<double> {
      const auto met = rank_meetings(each, trace::whole_window(each));
      return met ? std::optional(met->exchange_s) : std::nullopt;
    };
    row.exchange_s = time_in(record);
    row.simulated_exchange_s = time_in(made.simulated.record);
    row.exchange_bound_s = made.planned.exchange_bound;
  }

 private:
  static void append(Words& words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
  }
  int cpus_of_each(int ranks) const { return std::max(1, available_cpus() / ranks); }
  CellOptions cell_of(int ranks) const {
    CellOptions cell = flags_.cell;
    cell.workers = cpus_of_each(ranks);
    cell.granularity = "fixed";
    return cell;
  }
  // With --hosts the number of workers is left to each rank: machines may differ in CPUs.
  Words flags_for(const CellOptions& cell) const {
    Words words = flags_of(cell);
    if (const auto found = std::ranges::find(words, "--workers");
        !hosts_.empty() && found != words.end())
      words.erase(found, found + 2);
    return words;
  }
  Words by_mpirun(int ranks) const {
    Words words{"mpirun", "-q", "-n", std::to_string(ranks)};
    if (!hosts_.empty()) {
      std::string names;
      for (int r = 0; r < ranks; ++r) names += (r ? "," : "") + hosts_[static_cast<std::size_t>(r)];
      append(words, {"-H", names});
    } else if (ranks <= available_cpus()) {
      // CPUs are counted as hardware threads, of which a core may have several.
      append(words, {"--use-hwthread-cpus", "--map-by",
                     "slot:PE=" + std::to_string(cpus_of_each(ranks)), "--bind-to", "hwthread"});
    }
    return words;
  }
  fs::path train(int ranks, const Words& more) const {
    fs::path folder = scratch_.path() / "run";
    fs::remove_all(folder);
    Words words = by_mpirun(ranks);
    append(words, {program_, "train"});
    append(words, flags_for(cell_of(ranks)));
    append(words, {"--test", "none", "--lr", "0.001", "--wire-precision", flags_.wire_precision,
                   "--out", folder.string()});
    append(words, more);
    run(words);
    return folder;
  }
  static std::string run(const Words& words) {
    const ProgramResult done = regatta::run_program(words);
    if (done.status == 0) return done.output;
    const std::size_t complaint = done.output.find("regatta: ");
    throw InputError("a run failed: " + (complaint == std::string::npos
                                             ? done.first_line()
                                             : done.output.substr(complaint + 9)));
  }

  const RankScalingFlags& flags_;
  Words hosts_;
  std::string program_ = fs::read_symlink("/proc/self/exe").string();
  ScratchFolder scratch_{"bench"};
};

std::vector<int> ranks_of(const RankScalingFlags& flags) {
  std::vector<int> ranks;
  const std::size_t hosts = listed(flags.hosts).size();
  for (const std::int64_t each : parse_sizes("--ranks", flags.ranks)) {
    if (each < 1 || each > flags.cell.batch)
      throw InputError("--ranks " + flags.ranks + ": use 1 to " + std::to_string(flags.cell.batch) +
                       ", the batch");
    if (hosts > 0 && each > static_cast<std::int64_t>(hosts))
      throw InputError("--ranks " + flags.ranks + ": --hosts names only " + std::to_string(hosts));
    ranks.push_back(static_cast<int>(each));
  }
  std::ranges::sort(ranks);
  return ranks;
}

std::string shown(const std::optional<double>& seconds) {
  return seconds ? seconds_text(*seconds) : "-";
}

}  // namespace

int run_rank_scaling(const RankScalingFlags& flags) {
  const std::vector<int> numbers = ranks_of(flags);
  if (flags.json_file) require_writable(*flags.json_file);
  set_mpirun_defaults();
  const RankRuns runs(flags);
  std::vector<Row> rows;
  for (const int ranks : numbers) rows.push_back({.ranks = ranks});
  for (std::size_t repeat = 0; repeat < flags.repeats; ++repeat)
    for (Row& row : rows) {
      row.alone.push_back(runs.alone(row.ranks));
      if (row.ranks > 1)
        runs.together(row, row.alone.back());
      else
        row.reached.push_back(row.alone.back());
      std::cerr << formatted("round %zu of %zu: %d ranks: %.1f images/s", repeat + 1, flags.repeats,
                             row.ranks, row.reached.back())
                << std::endl;
    }
  for (Row& row : rows) {
    if (row.ranks == 1) continue;
    try {
      runs.exchange(row);
    } catch (const std::exception& error) {  // the speeds that were measured stay
      std::cerr << "regatta: the exchange of " << row.ranks
                << " ranks is not known: " << error.what() << std::endl;
    }
  }

  std::printf("%6s %11s %8s %11s %14s %8s %12s %12s %12s\n", "ranks", "images/s", "speedup",
              "efficiency", "alone, summed", "of that", "exchange", "simulated", "its bound");
  Json json = Json::array();
  const double one = median_of(rows.front().reached) / rows.front().ranks;
  for (const Row& row : rows) {
    const double reached = median_of(row.reached), alone = median_of(row.alone);
    std::printf("%6d %11.1f %8.2f %11s %14.1f %8s %12s %12s %12s\n", row.ranks, reached,
                reached / one, percent_text(reached / one / row.ranks).c_str(), alone,
                percent_text(reached / alone).c_str(), shown(row.exchange_s).c_str(),
                shown(row.simulated_exchange_s).c_str(), shown(row.exchange_bound_s).c_str());
    const std::optional<double> taken = mean_if_any(row.taken);
    if (const std::string text = disturbed_text(taken); !text.empty())
      std::printf("       %s\n", text.c_str());
    const auto or_null = [](const std::optional<double>& value) {
      return value ? Json(*value) : Json();
    };
    json.push_back({{"ranks", row.ranks},
                    {"images_per_s", reached},
                    {"repeats", row.reached},
                    {"speedup", reached / one},
                    {"efficiency", 100 * reached / one / row.ranks},
                    {"ideal_images_per_s", alone},
                    {"ideal_efficiency", 100 * reached / alone},
                    {"exchange_s", or_null(row.exchange_s)},
                    {"simulated_exchange_s", or_null(row.simulated_exchange_s)},
                    {"exchange_bound_s", or_null(row.exchange_bound_s)},
                    {"taken_by_others", or_null(taken)}});
  }
  write_json_result(flags.json_file, {{"rows", json}});
  return 0;
}

}  // namespace regatta::app
