// How the workers of a run spend their time, and what a run reports of its granularity.
#pragma once

#include <optional>

#include "base/json.h"
#include "train/job.h"

namespace regatta::app {

// From step to step, warm-up left out.
class LoadMeter {
 public:
  explicit LoadMeter(const Executor& executor) : executor_(executor) {}

  void on_step();
  void on_rest() { running_ = false; }  // what follows is no step

  // Shares of all workers' time; nothing before the warm-up is over, or where kernels run on GPUs.
  std::optional<double> idle_share() const;
  std::optional<double> overhead_share() const;

 private:
  static constexpr int warm_up = 5;  // steps

  const Executor& executor_;
  int steps_ = 0;
  bool running_ = false;
  WorkerLoad last_;
  double kernels_ = 0, runtime_ = 0, all_ = 0;  // seconds
};

// `granularity`, `predicted_step_s`, `idle_share` and `overhead_share`; null where nothing is
// known.
Json granularity_fields(const TrainJob& job, const LoadMeter& meter);

}  // namespace regatta::app
