#include "app/bench_runs.h"

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/program.h"

namespace regatta::app {

namespace fs = std::filesystem;

BenchRuns::BenchRuns() : program_(fs::read_symlink("/proc/self/exe")) {}

ScalingSample BenchRuns::run(const CellOptions& cell) const {
  const fs::path result = folder() / "cell.json";
  std::vector<std::string> arguments = flags_of(cell);
  arguments.insert(arguments.begin(), {"bench", "cell"});
  const auto add = [&](const char* flag, const std::string& value) {
    arguments.insert(arguments.end(), {flag, value});
  };
  if (cell.steps) add("--steps", std::to_string(*cell.steps));
  add("--seconds", std::to_string(cell.seconds));
  add("--json", result.string());
  start(arguments);
  const Json json = read_json(result);
  const Json& taken = json.at("taken_by_others");
  return {json.at("step_s").get<std::vector<double>>(), json.at("batch").get<double>(),
          taken.is_null() ? std::nullopt : std::optional(taken.get<double>())};
}

void BenchRuns::trace(const CellOptions& cell, std::size_t steps, TraceDepth depth,
                      const fs::path& into) const {
  std::vector<std::string> arguments = flags_of(cell);
  arguments.insert(arguments.begin(), "train");
  arguments.insert(arguments.end(), {"--steps", std::to_string(steps), "--test", "none", "--lr",
                                     "0.001", "--out", into.string(), "--trace"});
  if (depth == TraceDepth::operators) arguments.emplace_back("ops");
  start(arguments);
}

void BenchRuns::start(std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), program_.string());
  const ProgramResult done = regatta::run_program(arguments);
  if (done.status == 0) return;
  // Progress may come before the complaint.
  const std::size_t complaint = done.output.find("regatta: ");
  if (complaint == std::string::npos) throw InputError("a run failed: " + done.first_line());
  const std::size_t begin = complaint + 9;
  throw InputError(done.output.substr(begin, done.output.find('\n', begin) - begin));
}

}  // namespace regatta::app
