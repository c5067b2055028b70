// `tickets stability`: from which reset point on does the order of the data no longer decide where
// training ends? (Linear mode connectivity: Frankle, Dziugaite, Roy and Carbin, 2020.)
#include <cstdio>
#include <iostream>
#include <memory>

#include "app/command.h"
#include "app/evaluating.h"
#include "app/tickets_command.h"
#include "app/tickets_runs.h"
#include "base/error.h"
#include "tickets/folder.h"
#include "tickets/line.h"
#include "train/checkpoint.h"

namespace regatta::app {
namespace {

namespace fs = std::filesystem;
using namespace tickets;

struct StabilityFlags {
  RunsFlags runs;
  int points = 11;
};

std::string twin_id(std::uint64_t seed, std::int64_t reset, char which) {
  return "seed" + std::to_string(seed) + "-reset" + std::to_string(reset) + "-twin-" + which;
}

Search search_of(const StabilityFlags& flags, const std::vector<std::string>& extras) {
  // Their seed makes the images too, and twins would train on different data.
  if (flags.runs.data.find("synth") != std::string::npos)
    throw InputError("--data " + flags.runs.data +
                     ": synthetic images change with the seed, which gives the order here; use "
                     "data from files");
  Search search = search_without_jobs(flags.runs, extras);
  search.controls.clear();
  for (const std::int64_t reset : search.resets)
    if (reset >= search.last_step)
      throw InputError("--resets: step " + std::to_string(reset) +
                       " is not before the last step, " + std::to_string(search.last_step));
  for (const std::uint64_t seed : search.seeds) {
    const std::string dense = "seed" + std::to_string(seed) + "-dense";
    search.jobs.push_back({.id = dense, .seed = seed, .steps = search.last_step});
    for (const std::int64_t reset : search.resets)
      for (const char which : {'a', 'b'})
        search.jobs.push_back({.id = twin_id(seed, reset, which),
                               .kind = JobKind::twin,
                               // Further than --seeds allows, so that no order comes again.
                               .seed = seed + (which == 'a' ? 1000003u : 2000003u),
                               .reset = reset,
                               .start = dense,
                               .steps = search.last_step - reset});
  }
  return search;
}

// Test errors along the line between the twins' last weights.
std::vector<double> errors_between(const fs::path& first, const fs::path& second, int points,
                                   const fs::path& scratch) {
  const TensorFile from = read_safetensors(latest_checkpoint(first) / "model.safetensors");
  const TensorFile to = read_safetensors(latest_checkpoint(second) / "model.safetensors");
  std::vector<double> errors;
  for (int i = 0; i < points; ++i) {
    write_safetensors(scratch, between(from, to, static_cast<double>(i) / (points - 1)));
    EvalFlags eval;
    eval.run = first.string();
    eval.weights = scratch.string();
    errors.push_back(1 - evaluate_by(eval, false).evaluation.accuracy);
  }
  std::error_code ignored;
  fs::remove(scratch, ignored);
  return errors;
}

}  // namespace

std::function<int()> declare_tickets_stability(CLI::App& app) {
  const auto flags = std::make_shared<StabilityFlags>();
  declare_runs(app, flags->runs, "twins");
  app.add_option("--points", flags->points, "tests along the line, both ends counted")
      ->type_name("N")
      ->check(whole_number(3, 1001))
      ->capture_default_str();
  app.footer(
      "All other flags are those of regatta train.\n"
      "Example:\n  regatta tickets stability --model lenet5 --data mnist --resets 0,100,1e "
      "--epochs 3 --out searches/stability");
  return [flags, &app] {
    DiskLayer files;
    const Search search = search_of(*flags, app.remaining());
    SearchFolder::write(files, flags->runs.out, search);
    WorkFlags work = flags->runs.work;
    work.json_file.reset();  // the result is the command's own
    if (const int code = work_on(flags->runs.out, work); code != 0) return code;
    SearchFolder folder(files, flags->runs.out);
    folder.refresh();
    Json rows = Json::array();
    std::printf("%10s %6s %12s %12s %10s\n", "reset", "seed", "error, ends", "on the way",
                "barrier");
    for (const std::uint64_t seed : search.seeds)
      for (const std::int64_t reset : search.resets) {
        const std::vector<double> errors = errors_between(
            folder.run_of(twin_id(seed, reset, 'a')), folder.run_of(twin_id(seed, reset, 'b')),
            flags->points, folder.path() / "between.safetensors");
        std::printf("%10lld %6llu %11.2f%% %11.2f%% %9.2f%%\n", static_cast<long long>(reset),
                    static_cast<unsigned long long>(seed), 50 * (errors.front() + errors.back()),
                    100 * std::ranges::max(errors), 100 * barrier(errors));
        rows.push_back(
            {{"reset", reset}, {"seed", seed}, {"errors", errors}, {"barrier", barrier(errors)}});
      }
    write_json_result(flags->runs.work.json_file, {{"rows", rows}});
    return 0;
  };
}

}  // namespace regatta::app
