#include "tune/calibration_steps.h"

#include <algorithm>

#include "train/weights.h"

namespace regatta {
namespace {

Recipe recipe_on(const PlanOptions& plan, Recipe recipe) {
  if (plan.devices == std::vector{DeviceKind::cpu} && recipe.precision == Precision::tf32)
    recipe.precision = Precision::fp32;
  return recipe;
}

}  // namespace

CalibrationSteps::CalibrationSteps(const TrainJob& job, const PlanOptions& plan)
    : recipe_(recipe_on(plan, job.recipe)),
      executor_(job.graph, make_plan(job.graph, recipe_, plan),
                {{recipe_.loaded_dtype(), recipe_.precision, recipe_.optimizer},
                 recipe_.normalisation,
                 true,
                 recipe_.seed}),
      visits_{job.data, std::make_shared<const std::vector<std::int64_t>>(
                            job.data->order(recipe_.seed, 0, recipe_.shuffle))},
      chunks_(std::ssize(chunks_of(executor_.plan()))) {
  initialise_roughly(executor_, recipe_.seed);
}

StepInput CalibrationSteps::input(std::int64_t size) {
  const std::int64_t samples = std::min(size * chunks_, recipe_.batch);
  if (next_ + samples > std::ssize(*visits_.order)) next_ = 0;
  StepInput input = train_batch(visits_, next_, samples, recipe_, 0);
  next_ += samples;
  input.keeps_groups = false;
  input.learning_rate = 0;  // however long it is measured, nothing runs away
  return input;
}

Seconds CalibrationSteps::run(std::int64_t size, int count) {
  const auto begin = std::chrono::steady_clock::now();
  Ticket flying;
  for (int i = 0; i < count; ++i) {
    const Ticket next = executor_.submit(ListKind::train, input(size));
    if (flying) executor_.wait(flying);
    flying = next;
  }
  executor_.wait(flying);
  return std::chrono::steady_clock::now() - begin;
}

}  // namespace regatta
