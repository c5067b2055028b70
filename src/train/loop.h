// The loop: steps of a recipe through the executor, at most so many in flight as the plan says.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "exec/executor.h"
#include "plan/recipe.h"
#include "regatta/epoch.h"
#include "train/speed.h"

namespace regatta {

struct StepRecord {
  std::int64_t step = 0;  // counted from 1
  double loss = 0;        // mean over its samples
  double learning_rate = 0;
  std::int64_t samples = 0, correct = 0;
  Seconds duration{};       // since the step before it finished, or the rest after that one
  double loader_share = 0;  // of the time of the workers that load, spent loading
  double data_wait = 0;     // of the duration, in which it waited for its first samples
  LoadingTimes loading{};   // what it did
};

// Where a run stands between two steps. With weights and optimizer state it is all a run goes on
// from: random numbers are functions of seed, step and sample, so none carries a state of its own.
struct TrainState {
  std::int64_t step = 0;  // steps done
  // Sums over the epoch under way, or over one that is over and still to be reported.
  double loss_sum = 0;
  std::int64_t seen = 0, correct = 0;
};

struct Evaluation {
  bool stopped = false;  // before its end: the rest means nothing
  double loss = 0, accuracy = 0;
  std::vector<float> logits;                  // samples x classes, if asked for
  std::vector<std::int32_t> labels, answers;  // by sample: the data's, and the largest logit's
};

// Told of progress as it happens, on the thread that trains.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  virtual void on_step(const StepRecord&) {}
  // The test of an epoch that is about to be reported.
  virtual void on_test(const Evaluation&) {}
  virtual void on_epoch(const EpochRecord&) {}
  // The weights stand still: an epoch or the run is over, or a rest was wanted.
  virtual void on_rest(const TrainState&) {}
  // Asked after every step: true brings a rest. Of several ranks the first one's counts.
  virtual bool wants_rest(std::int64_t /*step*/) { return false; }
  // Asked after every step and every batch of a test: true brings a rest and the run's end.
  virtual bool stop() { return false; }
  // How a run that breaks off can be taken up again, to end its error with; "" if it cannot.
  virtual std::string way_back() { return ""; }
};

struct TrainGoal {
  TrainState from;                         // what is already done
  std::int64_t last_step = 0;              // stop after this many
  std::function<void()> after_first_step;  // with nothing in flight
  // With several ranks: the steps after which all of them rest. Rests that only the first rank's
  // observer wants come a few steps later, when all ranks have heard of it.
  std::function<bool(std::int64_t step)> all_rest_after = {};
  // With several ranks, asked of the first after each step of a full batch: whether other shares
  // are wanted, given how many seconds each rank computed in a recent one (0: not known).
  std::function<bool(const std::vector<double>& computed_s)> wants_new_shares = {};
  // Called by all ranks alike a few steps later, with nothing in flight, after so many steps. The
  // executor may be another one afterwards, at the same address, with the same weights.
  std::function<void(std::int64_t step)> share_anew = {};
};

std::int64_t steps_per_epoch(const Recipe& recipe, const Dataset& data);

// The last step of a run that goes so far: at most one is given; default: one epoch. Throws
// InputError.
std::int64_t last_step_of(std::optional<std::int64_t> epochs, std::optional<std::int64_t> steps,
                          std::int64_t per_epoch);

// Throws InputError when a loss or gradient is no longer a number: it names the step and where that
// first appeared, and parameters are those of the step before. With several ranks all call it
// alike; a stop that one rank's observer wants stops all after the same step.
Speed train(Executor& executor, const Recipe& recipe, std::shared_ptr<const Dataset> data,
            std::shared_ptr<const Dataset> test, const TrainGoal& goal, TrainObserver& observer);

Evaluation evaluate(Executor& executor, const std::shared_ptr<const Dataset>& data,
                    std::int64_t batch, bool keep_logits = false,
                    const std::function<bool()>& stop = {});

}  // namespace regatta
