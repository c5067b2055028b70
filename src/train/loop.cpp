#include "train/loop.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>

#include "base/error.h"

namespace regatta {
namespace {

using Clock = std::chrono::steady_clock;
using Order = std::shared_ptr<const std::vector<std::int64_t>>;

// The batch that starts at `first` in `order`.
StepInput batch_of(const std::shared_ptr<const Dataset>& data, const Order& order,
                   std::int64_t first, std::int64_t batch) {
  StepInput input;
  input.samples = std::min(batch, static_cast<std::int64_t>(order->size()) - first);
  input.load = [data, order, first](std::int64_t begin, std::int64_t count, std::byte* samples,
                                    Target* targets) {
    const std::span<const std::int64_t> all(*order);
    std::vector<std::int32_t> labels(static_cast<std::size_t>(count));
    data->read(
        all.subspan(static_cast<std::size_t>(first + begin), static_cast<std::size_t>(count)),
        samples, labels.data());
    std::ranges::transform(labels, targets, Target::of);
  };
  return input;
}

class Loop {
 public:
  Loop(Executor& executor, const Recipe& recipe, std::shared_ptr<const Dataset> data,
       std::shared_ptr<const Dataset> test, const TrainGoal& goal, TrainObserver& observer)
      : executor_(executor),
        recipe_(recipe),
        data_(std::move(data)),
        test_(std::move(test)),
        goal_(goal),
        observer_(observer),
        per_epoch_(steps_per_epoch(recipe, *data_)),
        state_(goal.from) {}

  void run() {
    last_finish_ = epoch_start_ = Clock::now();
    bool stopping = false;
    if (epoch_unreported()) stopping = !finish_epoch();
    for (std::int64_t step = state_.step; step < goal_.last_step && !stopping; ++step) {
      const std::int64_t position = step % per_epoch_;
      if (position == 0 || step == goal_.from.step) begin_epoch(step / per_epoch_);
      StepInput input = batch_of(data_, order_, position * recipe_.batch, recipe_.batch);
      input.update = step + 1;
      input.step = static_cast<std::uint64_t>(step);
      while (flying_.size() >= static_cast<std::size_t>(executor_.plan().steps_in_flight))
        collect();
      flying_.push_back({step + 1, executor_.submit(Job::train, std::move(input))});
      if (step == 0 && goal_.after_first_step) {
        collect_all();
        goal_.after_first_step();
      }
      stopping = observer_.stop();
      const bool epoch_over = position + 1 == per_epoch_ || step + 1 == goal_.last_step;
      if (epoch_over || stopping || observer_.wants_rest(step + 1)) {
        collect_all();
        if (epoch_over)
          stopping |= !finish_epoch();
        else
          rest();
      }
    }
  }

 private:
  struct Flying {
    std::int64_t step;
    Ticket ticket;
  };

  void begin_epoch(std::int64_t epoch) {
    order_ = std::make_shared<const std::vector<std::int64_t>>(
        epoch_order(data_->info().count, recipe_.seed, epoch, recipe_.shuffle));
    // Sums of other data, if the run goes on with such, are of no use.
    const std::int64_t position = state_.step % per_epoch_;
    if (state_.seen != position * recipe_.batch) clear_sums();
    epoch_start_ = Clock::now();
  }

  void clear_sums() {
    state_.loss_sum = 0;
    state_.seen = state_.correct = 0;
  }

  // True if the run was stopped while the epoch's test was under way.
  bool epoch_unreported() const {
    return state_.step > 0 && state_.step % per_epoch_ == 0 && state_.seen == data_->info().count;
  }

  void rest() {
    observer_.on_rest(state_);
    last_finish_ = Clock::now();
  }

  void collect_all() {
    while (!flying_.empty()) collect();
  }

  void collect() {
    const Flying oldest = flying_.front();
    flying_.pop_front();
    const StepResult result = executor_.wait(oldest.ticket);
    StepRecord record;
    record.step = oldest.step;
    record.samples = static_cast<std::int64_t>(result.losses.size());
    // Summed in the order of samples, so the cut has no say in the rounding.
    const double sum = std::accumulate(result.losses.begin(), result.losses.end(), 0.0);
    record.loss = sum / static_cast<double>(record.samples);
    record.correct = static_cast<std::int64_t>(
        std::accumulate(result.correct.begin(), result.correct.end(), 0.0));
    record.duration = result.finished - last_finish_;
    last_finish_ = result.finished;
    if (!std::isfinite(record.loss))
      throw InputError("step " + std::to_string(record.step) +
                       ": the loss is no longer a number; try a smaller --lr, or look for such "
                       "values in the data" +
                       observer_.way_back());
    state_.step = record.step;
    state_.loss_sum += sum;
    state_.seen += record.samples;
    state_.correct += record.correct;
    observer_.on_step(record);
  }

  // Reports and rests. False if the test was stopped: then the epoch is reported when the run goes
  // on.
  bool finish_epoch() {
    EpochRecord record;
    record.epoch = (state_.step - 1) / per_epoch_ + 1;
    record.train_loss = state_.loss_sum / static_cast<double>(state_.seen);
    record.train_accuracy = static_cast<double>(state_.correct) / static_cast<double>(state_.seen);
    record.duration = Clock::now() - epoch_start_;
    if (test_) {
      const Evaluation tested =
          evaluate(executor_, test_, recipe_.batch, false, [&] { return observer_.stop(); });
      if (tested.stopped) {
        rest();
        return false;
      }
      record.test_loss = tested.loss;
      record.test_accuracy = tested.accuracy;
    }
    observer_.on_epoch(record);
    if (state_.step % per_epoch_ == 0) clear_sums();
    rest();
    return true;
  }

  Executor& executor_;
  const Recipe& recipe_;
  std::shared_ptr<const Dataset> data_, test_;
  const TrainGoal& goal_;
  TrainObserver& observer_;
  std::int64_t per_epoch_;
  TrainState state_;
  Order order_;
  std::deque<Flying> flying_;
  Clock::time_point last_finish_, epoch_start_;
};

}  // namespace

std::int64_t steps_per_epoch(const Recipe& recipe, const Dataset& data) {
  return (data.info().count + recipe.batch - 1) / recipe.batch;
}

std::int64_t last_step_of(std::optional<std::int64_t> epochs, std::optional<std::int64_t> steps,
                          std::int64_t per_epoch) {
  const auto refuse = [](const char* flag, std::int64_t value, const char* way_out) {
    throw InputError(std::string(flag) + " " + std::to_string(value) + ": " + way_out);
  };
  if (epochs && steps) throw InputError("--epochs and --steps exclude each other; give one");
  if (steps) {
    if (*steps < 1) refuse("--steps", *steps, "use 1 or more");
    return *steps;
  }
  std::int64_t last = 0;
  if (epochs && *epochs < 1) refuse("--epochs", *epochs, "use 1 or more");
  if (__builtin_mul_overflow(epochs.value_or(1), per_epoch, &last))
    refuse("--epochs", *epochs, "that is more steps than can be counted");
  return last;
}

void train(Executor& executor, const Recipe& recipe, std::shared_ptr<const Dataset> data,
           std::shared_ptr<const Dataset> test, const TrainGoal& goal, TrainObserver& observer) {
  Loop(executor, recipe, std::move(data), std::move(test), goal, observer).run();
}

Evaluation evaluate(Executor& executor, const std::shared_ptr<const Dataset>& data,
                    std::int64_t batch, bool keep_logits, const std::function<bool()>& stop) {
  const auto order = std::make_shared<const std::vector<std::int64_t>>(
      epoch_order(data->info().count, 0, 0, false));
  Evaluation total;
  double loss = 0, correct = 0;
  std::deque<Ticket> flying;
  const auto collect = [&] {
    StepResult result = executor.wait(flying.front());
    flying.pop_front();
    loss = std::accumulate(result.losses.begin(), result.losses.end(), loss);
    correct = std::accumulate(result.correct.begin(), result.correct.end(), correct);
    if (keep_logits)
      total.logits.insert(total.logits.end(), result.logits.begin(), result.logits.end());
  };
  for (std::int64_t first = 0; first < data->info().count && !total.stopped; first += batch) {
    if (flying.size() >= static_cast<std::size_t>(executor.plan().steps_in_flight)) collect();
    flying.push_back(executor.submit(Job::evaluate, batch_of(data, order, first, batch)));
    total.stopped = stop && stop();
  }
  while (!flying.empty()) collect();
  total.loss = loss / static_cast<double>(data->info().count);
  total.accuracy = correct / static_cast<double>(data->info().count);
  return total;
}

double typical_throughput(const std::vector<StepRecord>& steps) {
  const std::size_t warm_up = std::min<std::size_t>(steps.size() / 2, 10);
  std::vector<double> rates;
  for (std::size_t i = warm_up; i < steps.size(); ++i)
    if (steps[i].duration.count() > 0)
      rates.push_back(static_cast<double>(steps[i].samples) / steps[i].duration.count());
  if (rates.empty()) return 0;
  const auto middle = rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2);
  std::ranges::nth_element(rates, middle);
  return *middle;
}

}  // namespace regatta
