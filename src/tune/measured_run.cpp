#include "tune/measured_run.h"

#include <algorithm>

#include "platform/distance.h"
#include "platform/energy.h"
#include "train/weights.h"
#include "tune/settled_steps.h"

namespace regatta {
namespace {

constexpr std::int64_t settling_steps = 3, fewest_steps = 6;

// Also tells what workers and the thread that submits did meanwhile.
class MeasuredSteps : public SettledSteps {
 public:
  MeasuredSteps(const Executor& executor, double seconds)
      : SettledSteps(Seconds(seconds), steps_to_settle(executor.plan(), settling_steps),
                     fewest_steps),
        executor_(executor) {}

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
    const Seconds all = last_.handing_over - first_.handing_over;
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
  return measure_undisturbed([&] { return measure_once(job, seconds, watch_tasks); }, patience);
}

}  // namespace regatta
