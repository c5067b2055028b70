#include "app/train_console.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <iostream>

#include "app/command.h"
#include "data/skips.h"
#include "trace/loading.h"

namespace regatta::app {
namespace {

std::atomic<int> caught = 0;

// SIGUSR1 is what mpirun hands to its ranks, and what batch systems send before time is up.
constexpr std::array signals{SIGINT, SIGTERM, SIGHUP, SIGUSR1};

void note(int signal) {
  caught = signal;
  std::signal(signal, SIG_DFL);
}

}  // namespace

StopOnSignals::StopOnSignals() {
  caught = 0;
  for (const int signal : signals)
    if (std::signal(signal, note) == SIG_IGN) std::signal(signal, SIG_IGN);  // nohup
}

StopOnSignals::~StopOnSignals() {
  for (const int signal : signals) std::signal(signal, SIG_DFL);
}

int caught_signal() { return caught; }

Console::Console(RunFolder& folder, Tracing& tracing, LoadMeter& meter, RunEnergy& energy,
                 Refinement* refinement, const TrainJob& job, const TrainGoal& goal)
    : folder_(folder),
      tracing_(tracing),
      meter_(meter),
      energy_(energy),
      refinement_(refinement),
      batch_(job.recipe.samples_per_step()),
      images_(job.data->info().count),
      per_epoch_(steps_per_epoch(job.recipe, *job.data)),
      goal_(goal),
      averaged_(job.recipe.optimizer.ema > 0),
      progress_(std::cerr) {}

void Console::on_step(const StepRecord& record) {
  meter_.on_step();
  energy_.on_step();
  folder_.on_step(record);
  tracing_.on_step(record);
  if (refinement_) refinement_->on_step(record);
  curve_.add(as_stretch(record));
  last_ = record;
  reported_ = false;
  // Time and images apart: a mean of rates would hardly notice a long step.
  recent_seconds_ = 0.95 * recent_seconds_ + record.duration.count();
  recent_images_ = 0.95 * recent_images_ + static_cast<double>(record.samples);
  progress_.update(state(record));
}

void Console::on_epoch(const EpochRecord& record) {
  folder_.on_epoch(record);
  tracing_.on_epoch(record);
  epochs_.add(record);
  reported_ = true;
  if (last_.step > 0) progress_.finish_epoch(state(last_));
  char text[200];
  int length = std::snprintf(text, sizeof text, "epoch %lld: train loss %.4f, accuracy %.2f%%",
                             static_cast<long long>(record.epoch), record.train_loss,
                             100 * record.train_accuracy);
  if (record.test_accuracy)
    std::snprintf(text + length, sizeof text - static_cast<std::size_t>(length),
                  "; test loss %.4f, accuracy %.2f%%%s", *record.test_loss,
                  100 * *record.test_accuracy, averaged_ ? " (averaged weights)" : "");
  progress_.message(text);
  for (const std::string& note : record.notes) progress_.message(note);
}

void Console::on_rest(const TrainState& state) {
  meter_.on_rest();
  folder_.on_rest(state);
  finished_ = reported_ && state.step == goal_.last_step;
}

ProgressState Console::state(const StepRecord& record) const {
  ProgressState state;
  state.epoch = (record.step - 1) / per_epoch_ + 1;
  state.epochs = (goal_.last_step - 1) / per_epoch_ + 1;
  const std::int64_t before = (state.epoch - 1) * per_epoch_;  // steps of earlier epochs
  state.done = std::min((record.step - before) * batch_, images_);
  // The last epoch may be cut short by --steps.
  state.total = std::min(std::min(goal_.last_step - before, per_epoch_) * batch_, images_);
  const double rate = recent_seconds_ > 0 ? recent_images_ / recent_seconds_ : 0;
  state.images_per_second = rate;
  state.loss = record.loss;
  if (rate > 0)
    state.left = Seconds(static_cast<double>(goal_.last_step - record.step) *
                         static_cast<double>(batch_) / rate);
  return state;
}

Json train_result(const TrainJob& job, const Executor& executor, const Console& console,
                  const LoadMeter& meter, const Speed& speed, const std::filesystem::path& folder) {
  Json steps = Json::array(), epochs = Json::array();
  for (const trace::StepStretch& point : console.curve().points()) {
    steps.push_back({{"step", point.step}, {"loss", point.loss}});
    if (point.steps > 1)
      steps.back().update(
          {{"steps", point.steps}, {"loss_min", point.loss_min}, {"loss_max", point.loss_max}});
  }
  for (const EpochRecord& epoch : console.epochs().epochs())
    epochs.push_back({{"epoch", epoch.epoch},
                      {"train_loss", epoch.train_loss},
                      {"train_accuracy", epoch.train_accuracy},
                      {"test_loss", epoch.test_loss ? Json(*epoch.test_loss) : Json()},
                      {"test_accuracy", epoch.test_accuracy ? Json(*epoch.test_accuracy) : Json()},
                      {"seconds", epoch.duration.count()},
                      {"loader_share", epoch.loader_share},
                      {"data_wait", epoch.data_wait},
                      {"loading", trace::to_json(epoch.loading)}});
  Json result{{"run", folder.string()},
              {"recipe", job.recipe.to_json()},
              {"plan", to_json(job.whole_plan(), job.graph)},
              {"steps", steps},
              {"epochs", epochs},
              {"skipped", to_json(job.data->skipped())},
              {"test_skipped", to_json(job.test ? job.test->skipped() : SkippedSamples{})},
              {"loader_share", console.epochs().loader_share()},
              {"data_wait", console.epochs().data_wait()},
              {"loading", trace::to_json(console.epochs().loading())},
              {"peak_memory_bytes", peak_memory_bytes()},
              {"buffer_bytes", executor.buffer_bytes()},
              {"tasks_per_step", executor.tasks_per_step()},
              {"graph_captures", executor.graph_captures()}};
  result.update(to_json(speed));
  result.update(granularity_fields(job, meter));
  return result;
}

}  // namespace regatta::app
