#include "train/loop.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "data/skips.h"
#include "plan/learning_rate.h"
#include "platform/disturbance.h"
#include "platform/machine.h"
#include "train/batches.h"
#include "train/load_watch.h"
#include "train/weights.h"

namespace regatta {
namespace {

using Clock = std::chrono::steady_clock;
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
        state_(goal.from),
        loads_(executor.plan()),
        others_({.threads = threads_of(executor.plan()), .cpus = available_cpus()}) {}

  Speed run() {
    last_finish_ = epoch_start_ = Clock::now();
    bool stopping = false;
    if (epoch_unreported()) stopping = !finish_epoch();
    for (std::int64_t step = state_.step; step < goal_.last_step && !stopping; ++step) {
      const std::int64_t position = step % per_epoch_;
      if (position == 0 || step == goal_.from.step) begin_epoch(step / per_epoch_);
      submit(step);
      if (step == 0 && goal_.after_first_step) {
        collect_all();
        goal_.after_first_step();
      }
      stopping = alone_ ? observer_.stop() : (wishes_ & wish_to_stop) != 0;
      const bool epoch_over = position + 1 == per_epoch_ || step + 1 == goal_.last_step;
      if (epoch_over || stopping || rests_after(step + 1)) {
        collect_all();
        if (epoch_over)
          stopping |= !finish_epoch();
        else
          rest();
      }
      if ((wishes_ & wish_for_shares) != 0 && !stopping && step + 1 < goal_.last_step)
        share_anew(step + 1);
    }
    Speed speed = speed_.speed();
    speed.taken_by_others = others_.read();
    return speed;
  }

 private:
  // A step on its way, or one of its micro-batches.
  struct Flying {
    std::int64_t step;
    ListKind job;
    double learning_rate;
    StepInput input;
    Ticket ticket;
    std::shared_ptr<LoadWatch::Step> loads;
  };

  // What a rank may want. All ranks collect the results of the same lists in the same order, so
  // what travels with them is known to all at the same place.
  static constexpr std::uint32_t wish_to_stop = 1, wish_to_rest = 2, wish_for_shares = 4;

  std::uint32_t wishes_at(std::int64_t step) {
    if (alone_) return 0;
    const bool rests =
        executor_.ranks().rank == 0 && !all_rest_after(step) && observer_.wants_rest(step);
    return (observer_.stop() ? wish_to_stop : 0) | (rests ? wish_to_rest : 0) |
           (wants_new_shares_ ? wish_for_shares : 0);
  }
  bool all_rest_after(std::int64_t step) const {
    return goal_.all_rest_after && goal_.all_rest_after(step);
  }
  bool rests_after(std::int64_t step) {
    if (alone_) return observer_.wants_rest(step);
    return all_rest_after(step) || (wishes_ & wish_to_rest) != 0;
  }

  // A step is one list, or several that add up their gradients.
  void submit(std::int64_t step) {
    const std::int64_t first = step % per_epoch_ * recipe_.samples_per_step();
    const std::int64_t samples = std::min(recipe_.samples_per_step(), data_->info().count - first);
    const Rates rates = rates_at(recipe_.schedule, recipe_.optimizer.learning_rate, step);
    for (std::int64_t done = 0; done < samples; done += recipe_.batch) {
      const std::int64_t count = std::min(recipe_.batch, samples - done);
      const auto number =
          static_cast<std::uint64_t>(step * recipe_.accumulate + done / recipe_.batch);
      StepInput input = train_batch(visits_, first + done, count, recipe_, number);
      input.step = number;
      input.step_samples = samples;
      input.update = input.recorded_as = step + 1;
      input.learning_rate = rates.learning_rate;
      input.momentum = rates.momentum;
      input.wishes = wishes_at(step + 1);
      input.computed_s = computed_s_;
      const bool begins = done == 0, ends = done + count == samples;
      const ListKind job = begins && ends ? ListKind::train
                           : begins       ? ListKind::first
                           : ends         ? ListKind::last
                                          : ListKind::middle;
      make_room();
      const auto loads = loads_.watch(input);
      const Ticket ticket = executor_.submit(job, input);
      flying_.push_back({step + 1, job, rates.learning_rate, std::move(input), ticket, loads});
    }
  }

  // Where no CPU is left for this thread, it interrupts the workers as rarely as it can: half of
  // what is on its way is waited for at once.
  void make_room() {
    const auto most = static_cast<std::size_t>(executor_.plan().steps_in_flight);
    if (flying_.size() < most) return;
    // Ranks must all collect alike, whatever CPUs each has.
    const std::size_t many =
        executor_.has_spare_cpu() || !alone_ ? 1 : std::max<std::size_t>(most / 2, 1);
    if (many > 1) executor_.await(flying_[many - 1].ticket);
    while (flying_.size() > most - many) collect();
  }

  void begin_epoch(std::int64_t epoch) {
    visits_ = {data_, std::make_shared<const std::vector<std::int64_t>>(
                          data_->order(recipe_.seed, epoch, recipe_.shuffle))};
    // Sums of other data, if the run goes on with such, are of no use.
    const std::int64_t position = state_.step % per_epoch_;
    if (state_.seen != position * recipe_.samples_per_step()) clear_sums();
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
    const Clock::time_point begin = Clock::now();
    observer_.on_rest(state_);
    wishes_ &= ~wish_to_rest;
    load_before_.reset();  // a test is no step
    last_finish_ = Clock::now();
    rested_ = last_finish_ - begin;
  }

  void share_anew(std::int64_t step) {
    collect_all();
    const Clock::time_point begin = Clock::now();
    goal_.share_anew(step);
    wishes_ &= ~wish_for_shares;
    wants_new_shares_ = false;
    load_before_.reset();
    computed_s_ = 0;
    last_finish_ = Clock::now();
    rested_ += last_finish_ - begin;
  }

  // How long this rank's workers computed for the step that was collected just now. With several
  // steps in flight a part of it is the next one's: in the long run that evens out.
  void note_computing(std::int64_t samples) {
    if (alone_ || !goal_.share_anew) return;
    const WorkerLoad now = executor_.load();
    std::size_t chunks = 0;
    for (const DeviceGroup* group : groups_of(executor_.plan())) chunks += group->chunks.size();
    const double workers = std::min(static_cast<double>(now.workers), static_cast<double>(chunks));
    const bool counts = load_before_ && workers > 0 && samples == recipe_.samples_per_step();
    computed_s_ =
        counts ? static_cast<float>(Seconds(now.kernels - load_before_->kernels).count() / workers)
               : 0;
    load_before_ = now;
  }

  void collect_all() {
    while (!flying_.empty()) collect();
  }

  void collect() {
    const Flying oldest = std::move(flying_.front());
    flying_.pop_front();
    const StepResult result = result_of(oldest);
    wishes_ |= result.wishes;
    // Summed in the order of samples, so the cut has no say in the rounding.
    step_loss_ = std::accumulate(result.losses.begin(), result.losses.end(), step_loss_);
    step_samples_ += static_cast<std::int64_t>(result.losses.size());
    step_correct_ += static_cast<std::int64_t>(
        std::accumulate(result.correct.begin(), result.correct.end(), 0.0));
    if (!takes_step(oldest.job)) return;
    StepRecord record;
    record.step = oldest.step;
    record.learning_rate = oldest.learning_rate;
    record.samples = std::exchange(step_samples_, 0);
    record.correct = std::exchange(step_correct_, 0);
    const double sum = std::exchange(step_loss_, 0.0);
    record.loss = sum / static_cast<double>(record.samples);
    record.duration = result.finished - last_finish_;
    const LoaderUse loader = loads_.of_step(*oldest.loads, last_finish_, result.finished);
    record.loader_share = loader.share;
    record.data_wait = loader.waited_share();
    record.loading = loader.times;
    last_finish_ = result.finished;
    speed_.add(record.duration + std::exchange(rested_, Seconds{}), record.samples);
    if (speed_.steps() == SpeedMeter::warm_up_steps) others_.read();
    state_.step = record.step;
    state_.loss_sum += sum;
    state_.seen += record.samples;
    state_.correct += record.correct;
    observer_.on_step(record);
    note_computing(record.samples);
    if (executor_.ranks().rank == 0 && goal_.wants_new_shares && !wants_new_shares_)
      wants_new_shares_ = goal_.wants_new_shares(result.computed_s);
  }

  // A loss that is not a number ends the run; parameters are still those of the step before.
  StepResult result_of(const Flying& flying) try {
    return executor_.wait(flying.ticket);
  } catch (const NotFinite& broken) {
    // The batches behind it were stopped too.
    for (; !flying_.empty(); flying_.pop_front()) try {
        executor_.wait(flying_.front().ticket);
      } catch (const NotFinite&) {
      }
    const std::string where = executor_.find_not_finite(flying.input);
    if (executor_.ranks().rank > 0) throw RankFailed("the first rank tells what is not a number");
    throw InputError("step " + std::to_string(flying.step) + ": " + broken.what() +
                     (where.empty() ? "" : ", first in " + where) +
                     "; try a smaller --lr, or look for such values in the data" +
                     observer_.way_back());
  }

  // Reports and rests. False if the test was stopped: then the epoch is reported when the run goes
  // on.
  bool finish_epoch() {
    EpochRecord record;
    record.epoch = (state_.step - 1) / per_epoch_ + 1;
    record.train_loss = state_.loss_sum / static_cast<double>(state_.seen);
    record.train_accuracy = static_cast<double>(state_.correct) / static_cast<double>(state_.seen);
    record.duration = Clock::now() - epoch_start_;
    note_loading(record);
    if (test_) {
      const Evaluation tested = test();
      if (tested.stopped) {
        rest();
        return false;
      }
      record.test_loss = tested.loss;
      record.test_accuracy = tested.accuracy;
      observer_.on_test(tested);
      note_skipped(record, test_->skipped(), "test sample");
    }
    observer_.on_epoch(record);
    if (state_.step % per_epoch_ == 0) clear_sums();
    rest();
    return true;
  }

  void note_loading(EpochRecord& record) {
    const LoaderUse loader = loads_.of_epoch();
    record.loader_share = loader.share;
    record.data_wait = loader.waited_share();
    record.loading = loader.times;
    if (std::string text = loads_.verdict(loader, data_->info().spec); !text.empty())
      record.notes.push_back(std::move(text));
    const SkippedSamples skipped = data_->skipped();
    record.skipped = skipped.count;
    note_skipped(record, skipped, "sample");
  }

  static void note_skipped(EpochRecord& record, const SkippedSamples& skipped, const char* what) {
    for (std::string& line : lines_of(skipped, what, " so far"))
      record.notes.push_back(std::move(line));
  }

  // With the averaged parameters, if there are any.
  Evaluation test() {
    const bool averaged = recipe_.optimizer.ema > 0;
    if (averaged) swap_average(executor_);
    const auto back = [&] {
      if (averaged) swap_average(executor_);
    };
    try {
      Evaluation tested =
          evaluate(executor_, test_, recipe_.batch, false, [&] { return observer_.stop(); });
      back();
      return tested;
    } catch (...) {
      back();
      throw;
    }
  }

  Executor& executor_;
  const Recipe& recipe_;
  std::shared_ptr<const Dataset> data_, test_;
  const TrainGoal& goal_;
  TrainObserver& observer_;
  const bool alone_ = !executor_.ranks().several();
  std::uint32_t wishes_ = 0;  // of all ranks, as far as they have come in
  bool wants_new_shares_ = false;
  std::optional<WorkerLoad> load_before_;  // when the last step was collected
  float computed_s_ = 0;                   // see StepInput
  std::int64_t per_epoch_;
  TrainState state_;
  LoadWatch loads_;
  Visits visits_;
  std::deque<Flying> flying_;
  // Sums over the step whose micro-batches come in.
  double step_loss_ = 0;
  std::int64_t step_samples_ = 0, step_correct_ = 0;
  Clock::time_point last_finish_, epoch_start_;
  Seconds rested_{};  // since the last step: a checkpoint was written
  SpeedMeter speed_;
  DisturbanceMeter others_;
};

}  // namespace

std::int64_t steps_per_epoch(const Recipe& recipe, const Dataset& data) {
  return (data.info().count + recipe.samples_per_step() - 1) / recipe.samples_per_step();
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

Speed train(Executor& executor, const Recipe& recipe, std::shared_ptr<const Dataset> data,
            std::shared_ptr<const Dataset> test, const TrainGoal& goal, TrainObserver& observer) {
  return Loop(executor, recipe, std::move(data), std::move(test), goal, observer).run();
}

Evaluation evaluate(Executor& executor, const std::shared_ptr<const Dataset>& data,
                    std::int64_t batch, bool keep_logits, const std::function<bool()>& stop) {
  const std::int64_t all = data->info().count;
  const Visits visits{
      data, std::make_shared<const std::vector<std::int64_t>>(epoch_order(all, 0, 0, false))};
  Evaluation total;
  double loss = 0, correct = 0;
  std::deque<Ticket> flying;
  const auto classes = static_cast<std::ptrdiff_t>(executor.graph().classes());
  const bool alone = !executor.ranks().several();
  const auto collect = [&] {
    StepResult result = executor.wait(flying.front());
    flying.pop_front();
    if (result.wishes != 0) total.stopped = true;
    for (auto row = result.logits.begin(); row != result.logits.end(); row += classes)
      total.answers.push_back(
          static_cast<std::int32_t>(std::max_element(row, row + classes) - row));
    for (const float label : result.labels)
      total.labels.push_back(static_cast<std::int32_t>(label));
    loss = std::accumulate(result.losses.begin(), result.losses.end(), loss);
    correct = std::accumulate(result.correct.begin(), result.correct.end(), correct);
    if (keep_logits)
      total.logits.insert(total.logits.end(), result.logits.begin(), result.logits.end());
  };
  for (std::int64_t first = 0; first < data->info().count && !total.stopped; first += batch) {
    if (flying.size() >= static_cast<std::size_t>(executor.plan().steps_in_flight)) collect();
    StepInput input =
        test_batch(visits, first, std::min(batch, all - first), executor.sample_dtype());
    const bool stops = stop && stop();
    if (!alone) input.wishes = stops ? 1 : 0;  // all ranks stop when they hear of it
    flying.push_back(executor.submit(ListKind::evaluate, input));
    if (alone && stops) total.stopped = true;
  }
  while (!flying.empty()) collect();
  total.loss = loss / static_cast<double>(data->info().count);
  total.accuracy = correct / static_cast<double>(data->info().count);
  return total;
}

}  // namespace regatta
