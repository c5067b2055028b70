// What a user sees of a training run: its progress, and how Ctrl-C ends it.
#pragma once

#include <vector>

#include "app/load_meter.h"
#include "app/run_energy.h"
#include "app/tracing.h"
#include "base/progress.h"
#include "train/epoch_history.h"
#include "train/run_folder.h"
#include "tune/refine.h"

namespace regatta::app {

// Ctrl-C, a closed terminal, or a scheduler that wants its machine back ends the run after the step
// at work; the second time it ends the program at once.
class StopOnSignals {
 public:
  StopOnSignals();
  ~StopOnSignals();
  StopOnSignals(const StopOnSignals&) = delete;
  StopOnSignals& operator=(const StopOnSignals&) = delete;
};
// The signal that was caught since the last StopOnSignals was made; 0: none.
int caught_signal();

// Shows progress and gathers what --json reports; the run folder hears everything too.
class Console : public TrainObserver {
 public:
  // `refinement` may be null.
  Console(RunFolder& folder, Tracing& tracing, LoadMeter& meter, RunEnergy& energy,
          Refinement* refinement, const TrainJob& job, const TrainGoal& goal);

  void on_step(const StepRecord& record) override;
  void on_test(const Evaluation& tested) override { folder_.on_test(tested); }
  void on_epoch(const EpochRecord& record) override;
  void on_rest(const TrainState& state) override;
  bool wants_rest(std::int64_t step) override { return folder_.wants_rest(step); }
  bool stop() override { return caught_signal() != 0; }
  std::string way_back() override { return folder_.way_back(); }

  void message(const std::string& line) { progress_.message(line); }
  // No more steps will come: what is printed next begins a line of its own.
  void leave_line() { progress_.leave_line(); }

  // All steps are done and the last epoch is reported.
  bool finished() const { return finished_; }
  const trace::StepCurve& curve() const { return curve_; }
  const EpochHistory& epochs() const { return epochs_; }

 private:
  ProgressState state(const StepRecord& record) const;

  RunFolder& folder_;
  Tracing& tracing_;
  LoadMeter& meter_;
  RunEnergy& energy_;
  Refinement* refinement_;  // null: nothing is refined
  std::int64_t batch_, images_, per_epoch_;
  const TrainGoal& goal_;
  bool averaged_;
  Progress progress_;
  double recent_seconds_ = 0, recent_images_ = 0;  // of the latest twenty steps or so
  bool reported_ = false, finished_ = false;
  trace::StepCurve curve_;
  StepRecord last_;
  EpochHistory epochs_;
};

// What --json reports of a run.
Json train_result(const TrainJob& job, const Executor& executor, const Console& console,
                  const LoadMeter& meter, const Speed& speed, const std::filesystem::path& folder);

}  // namespace regatta::app
