#include "tune/measured_run.h"

#include <algorithm>

#include "exec/task_medians.h"
#include "platform/distance.h"
#include "platform/energy.h"
#include "train/weights.h"
#include "tune/settled_steps.h"

namespace regatta {
namespace {

// The least number of steps for settling, and again for measuring: three have a median.
constexpr std::int64_t few_steps = 3;

// A GPU's graph is captured when the same buffers come round for the second time.
std::int64_t steps_to_settle(const Plan& plan) {
  const bool gpu = std::ranges::any_of(
      groups_of(plan), [](const DeviceGroup* group) { return group->kind == DeviceKind::cuda; });
  return gpu ? std::max<std::int64_t>(few_steps, 2 * plan.steps_in_flight + 1) : few_steps;
}

// Also tells what workers and the thread that submits did meanwhile.
class MeasuredSteps : public SettledSteps {
 public:
  MeasuredSteps(const Executor& executor, Seconds time)
      : SettledSteps(time, steps_to_settle(executor.plan()), few_steps), executor_(executor) {}

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
    const Seconds span = (last_.when - first_.when) * last_.workers;
    return span > Seconds(0) ? (last_.kernels - first_.kernels) / span : 0;
  }
  Seconds submission() const {
    const Seconds all = last_.handing_over - first_.handing_over;
    return all / static_cast<double>(std::max<std::int64_t>(last_.lists - first_.lists, 1));
  }

 private:
  const Executor& executor_;
  WorkerLoad first_, last_;
};

Measured measure_once(const TrainJob& job, const Plan& plan, Seconds time, bool watch_tasks) {
  Executor executor(job.graph, plan, job.exec_options(true));
  initialise_roughly(executor, job.recipe.seed);
  Recipe still = job.recipe;
  still.optimizer.learning_rate = 0;  // so that weights stay finite however long it is measured
  TaskMedians tasks;
  MeasuredSteps steps(executor, time);
  if (watch_tasks)
    executor.watch(
        [&](const ListTimes& done) {
          if (steps.settled()) tasks.add(done);
        },
        Depth::task);
  EnergyMeter energy({.cpus = cpus_of(plan)});
  const Speed speed = train(executor, still, job.data, nullptr,
                            {.from = {}, .last_step = INT64_MAX, .after_first_step = {}}, steps);
  double joules = 0;
  for (const Energy& each : energy.read()) joules += each.joules;
  executor.watch_no_more();
  const double step_s =
      typical_seconds(steps.seconds()) / static_cast<double>(job.recipe.accumulate);
  return {.step_s = step_s,
          .energy_j = joules / steps.run_seconds() * step_s,
          .kernels_s = steps.kernel_share() * step_s,
          .submission_s = steps.submission().count(),
          .tasks = tasks.get(),
          .taken_by_others = speed.taken_by_others};
}

}  // namespace

Measured measure(const TrainJob& job, const Plan& plan, Seconds time, bool watch_tasks) {
  // Seconds to wait for undisturbed CPUs: five times the measurement, from 2 to 10 s.
  const double patience = std::clamp(5 * time.count(), 2.0, 10.0);
  return measure_undisturbed([&] { return measure_once(job, plan, time, watch_tasks); }, patience);
}

Seconds whole_trial(Seconds step) {
  return std::max(trial_time, static_cast<double>(2 * few_steps) * step) +
         SettledSteps::settling_time;
}

}  // namespace regatta
