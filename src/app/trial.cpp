#include "app/trial.h"

#include <algorithm>

#include "app/bench_cell.h"
#include "app/simulate_here.h"
#include "report/statistics.h"
#include "tasks/meetings.h"
#include "tasks/task_label.h"
#include "tune/stored_profile.h"

namespace regatta::app {
namespace {

// Steps of a simulation: enough tasks that random times even out.
constexpr std::int64_t fewest_simulated = 12, most_simulated = 120, simulated_tasks = 12000;

}  // namespace

TrainJob trial_job(const TrialSetting& setting, const PlanOptions& plan) {
  CellOptions cell;
  cell.model = setting.model;
  cell.input = setting.input;
  cell.batch = setting.batch;
  JobOptions options;
  options.model = setting.model;
  options.data = bench_data(cell);
  options.test = "none";
  options.input = Shape::parse(setting.input);
  options.batch = setting.batch;
  options.workers = setting.workers;
  options.shuffle = false;
  options.optimizer.learning_rate = 0.001;  // made-up images should not make the loss run away
  options.plan = plan;
  return make_job(options);
}

void learn_costs(Profile& profile, const TrainJob& job, CalibrationOptions options) {
  options.whole_chunks = true;  // the steps measured beside them take longer
  profile.learn(calibrate(job, options));
}

Predicted predict(const TrainJob& job) {
  const PricedStep step = priced_step(job);
  const std::size_t tasks = step.list().tasks.size();
  const std::int64_t steps = std::clamp(simulated_tasks / static_cast<std::int64_t>(tasks),
                                        fewest_simulated, most_simulated);
  const sim::Simulated made = simulate_here(job, steps);
  std::vector<std::vector<double>> seconds(tasks);
  double kernels = 0;
  for (const trace::Task& task : made.record.tasks) {
    const auto kind = static_cast<std::size_t>(task.kind);
    seconds[kind].push_back(trace::seconds(task.duration()));
    kernels += seconds[kind].back();
  }
  std::vector<double> medians;
  for (std::vector<double>& each : seconds) medians.push_back(median_of(std::move(each)));
  const double apart_s = apart(meetings(step.blueprint(), step.list(), medians));
  const auto workers = static_cast<double>(made.record.workers.size());
  const RuntimeCosts runtime = step.costs().runtime();
  const double submission = runtime.step + submitted_after(step.list(), runtime).back();
  return {
      made.step_s.front(), made.energy_j.front(), kernels / workers / static_cast<double>(steps),
      submission,          std::move(medians),    apart_s};
}

std::map<std::string, double> by_phase(const TrainJob& job, const std::vector<double>& tasks) {
  const PricedStep step = priced_step(job);
  std::map<std::string, double> phases;
  for (std::size_t t = 0; t < std::min(tasks.size(), step.list().tasks.size()); ++t) {
    trace::TaskKind kind;
    kind.phases = label_of(step.list().tasks[t]).phases;
    phases[trace::main_phase(kind)] += tasks[t];
  }
  return phases;
}

}  // namespace regatta::app
