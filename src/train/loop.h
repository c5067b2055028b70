// The loop: steps of a recipe through the executor, at most so many in flight as the plan says.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "data/dataset.h"
#include "exec/executor.h"
#include "plan/recipe.h"
#include "regatta/epoch.h"

namespace regatta {

struct StepRecord {
  std::int64_t step = 0;  // counted from 1
  double loss = 0;        // mean over the batch
  std::int64_t samples = 0, correct = 0;
  Seconds duration{};  // since the step before it finished
};

struct Evaluation {
  double loss = 0, accuracy = 0;
  std::vector<float> logits;  // samples x classes, if asked for
};

// Told of progress as it happens, on the thread that trains.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  virtual void on_step(const StepRecord&) {}
  virtual void on_epoch(const EpochRecord&) {}
  // After `step` steps the weights stand still: an epoch or the run is over.
  virtual void on_rest(std::int64_t /*step*/) {}
  // Asked after every step; true ends the run at the next rest.
  virtual bool stop() { return false; }
};

struct TrainGoal {
  std::int64_t first_step = 0;             // steps already done
  std::int64_t last_step = 0;              // stop after this many
  std::function<void()> after_first_step;  // with nothing in flight
};

std::int64_t steps_per_epoch(const Recipe& recipe, const Dataset& data);

// The last step of a run that goes so far: at most one is given; default: one epoch. Throws
// InputError.
std::int64_t last_step_of(std::optional<std::int64_t> epochs, std::optional<std::int64_t> steps,
                          std::int64_t per_epoch);

// Throws InputError when the loss is no longer a number.
void train(Executor& executor, const Recipe& recipe, std::shared_ptr<const Dataset> data,
           std::shared_ptr<const Dataset> test, const TrainGoal& goal, TrainObserver& observer);

Evaluation evaluate(Executor& executor, const std::shared_ptr<const Dataset>& data,
                    std::int64_t batch, bool keep_logits = false);

// Images per second of a typical step after warm-up: the median, with the first steps left out.
double typical_throughput(const std::vector<StepRecord>& steps);

}  // namespace regatta
