#include "app/trial.h"

#include <algorithm>

#include "app/bench_cell.h"
#include "app/forecast.h"
#include "app/simulate_here.h"
#include "platform/distance.h"
#include "platform/energy.h"
#include "report/statistics.h"
#include "tasks/meetings.h"
#include "tasks/task_label.h"
#include "train/settled_steps.h"
#include "train/weights.h"

namespace regatta::app {
namespace {

constexpr std::int64_t settling_steps = 3, fewest_steps = 6;
// Of a simulation: so many that chance evens out.
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
  options.layout = default_cpu_layout();
  options.whole_chunks = true;  // the steps measured beside them take longer
  profile.learn(calibrate(job.graph, job.recipe, job.data, options));
}

namespace {

// Also tells what workers and the thread that submits did meanwhile.
class MeasuredSteps : public SettledSteps {
 public:
  MeasuredSteps(const Executor& executor, double seconds)
      : SettledSteps(seconds, settling_steps, fewest_steps), executor_(executor) {}

  void on_step(const StepRecord& record) override {
    const bool before = settled();
    SettledSteps::on_step(record);
    if (settled() && !before) first_ = executor_.load();
  }
  bool stop() override {
    const bool enough = SettledSteps::stop();
    if (enough) last_ = executor_.load();
    return enough;
  }
  double kernel_share() const {
    const double span = Seconds(last_.when - first_.when).count() * last_.workers;
    return span > 0 ? Seconds(last_.kernels - first_.kernels).count() / span : 0;
  }
  double submission_seconds() const {
    const Seconds all =
        last_.handing_over - first_.handing_over + last_.submitting - first_.submitting;
    return all.count() / static_cast<double>(std::max<std::int64_t>(last_.lists - first_.lists, 1));
  }

 private:
  const Executor& executor_;
  WorkerLoad first_, last_;
};

Measured measure_once(const TrainJob& job, double seconds, bool watch_tasks) {
  Executor executor(job.graph, job.plan, job.exec_options(true));
  initialise_weights(executor, job.recipe.seed);
  TaskMedians tasks;
  MeasuredSteps steps(executor, seconds);
  if (watch_tasks) watch_settled(executor, steps, tasks);
  TrainGoal goal;
  goal.last_step = INT64_MAX;
  EnergyMeter energy({.cpus = cpus_of(job.plan)});
  const Speed speed = train(executor, job.recipe, job.data, nullptr, goal, steps);
  double joules = 0;
  for (const Energy& each : energy.read()) joules += each.joules;
  Measured found;
  found.step_s = typical_seconds(steps.seconds());
  found.energy_j = joules / steps.run_seconds() * found.step_s;
  found.kernels_s = steps.kernel_share() * found.step_s;
  found.submission_s = steps.submission_seconds();
  found.taken_by_others = speed.taken_by_others;
  if (watch_tasks) {
    executor.watch_no_more();
    found.tasks = tasks.get();
  }
  return found;
}

}  // namespace

Measured measure(const TrainJob& job, double seconds, bool watch_tasks) {
  const double patience = std::min(5 * seconds, 10.0);
  return while_near([&] { return measure_once(job, seconds, watch_tasks); }, patience);
}

Predicted predict(const TrainJob& job) {
  const Forecast forecast(job);
  const std::size_t tasks = forecast.list().tasks.size();
  const std::int64_t steps = std::clamp(simulated_tasks / static_cast<std::int64_t>(tasks),
                                        fewest_simulated, most_simulated);
  const sim::Simulated made = simulate_here(job, steps);
  std::vector<std::vector<double>> seconds(tasks);
  double kernels = 0, submission = 0;
  for (const trace::Task& task : made.record.tasks) {
    const auto kind = static_cast<std::size_t>(task.kind);
    seconds[kind].push_back(trace::seconds(task.duration()));
    (submits(forecast.list().tasks[kind]) ? submission : kernels) += seconds[kind].back();
  }
  std::vector<double> medians;
  for (std::vector<double>& each : seconds) medians.push_back(median_of(std::move(each)));
  const double apart_s = apart(meetings(forecast.blueprint(), forecast.list(), medians));
  const auto workers = static_cast<double>(made.record.workers.size());
  const RuntimeCosts runtime = forecast.costs().runtime();
  submission = submission / static_cast<double>(steps) + runtime.step +
               submitted_after(forecast.list(), runtime).back();
  return {
      made.step_s.front(), made.energy_j.front(), kernels / workers / static_cast<double>(steps),
      submission,          std::move(medians),    apart_s};
}

std::map<std::string, double> by_phase(const TrainJob& job, const std::vector<double>& tasks) {
  const Forecast forecast(job);
  std::map<std::string, double> phases;
  for (std::size_t t = 0; t < std::min(tasks.size(), forecast.list().tasks.size()); ++t) {
    trace::TaskKind kind;
    kind.phases = label_of(forecast.list().tasks[t]).phases;
    phases[trace::main_phase(kind)] += tasks[t];
  }
  return phases;
}

}  // namespace regatta::app
