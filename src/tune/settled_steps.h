// Steps of a run that is only measured, after it has settled: in its first moments memory is
// touched for the first time, kernels are made, and the system finds a CPU for every thread.
#pragma once

#include <vector>

#include "train/loop.h"

namespace regatta {

class SettledSteps : public TrainObserver {
 public:
  // Ends the run when settled steps have taken `time`, but not before `settling` steps were taken
  // to settle and `fewest` since.
  SettledSteps(Seconds time, std::int64_t settling, std::int64_t fewest)
      : wanted_(time.count()), settling_steps_(settling), fewest_(fewest) {}

  void on_step(const StepRecord& record) override {
    const double taken = record.duration.count();
    run_ += taken;
    if (settled()) {
      seconds_.push_back(taken);
      total_ += taken;
      return;
    }
    // The first makes the kernels, which says nothing of the rest.
    if (before_++ > 0) settling_ += taken;
  }
  // Whether steps count from now on.
  bool settled() const { return before_ >= settling_steps_ && settling_ >= settling_time.count(); }
  bool stop() override { return std::ssize(seconds_) >= fewest_ && total_ >= wanted_; }

  const std::vector<double>& seconds() const { return seconds_; }  // of each
  double run_seconds() const { return run_; }                      // of all steps, settled or not

  static constexpr Seconds settling_time{0.15};  // 50 periods of the system's scheduler

 private:
  double wanted_;
  std::int64_t settling_steps_, fewest_, before_ = 0;
  double settling_ = 0, total_ = 0, run_ = 0;
  std::vector<double> seconds_;
};

}  // namespace regatta
