// Choosing granularity by costs, as commands do it, and what they report of it.
#pragma once

#include <chrono>
#include <functional>
#include <iostream>
#include <string>

#include "base/json.h"
#include "base/progress.h"
#include "train/job.h"
#include "train/loop.h"

namespace regatta::app {

// What --granularity takes.
enum class GranularityKind { automatic, fixed };
GranularityKind granularity_named(const std::string& name);  // throws InputError

// For JobOptions::costs: what the profile of this machine says. If that is too little it is
// measured first, with one line said of it, and kept; unless the run would be over sooner:
// `steps` says how many it will take.
std::function<CostsFor(TrainJob&, const PlanOptions&)> cost_source(
    std::function<std::int64_t(const TrainJob&)> steps = {});

// For JobOptions::rehearsal: the best candidates are tried out, unless the profile knows how they
// did the last time, or the run is so short that it would not pay.
std::function<void(TrainJob&)> rehearsal(std::function<std::int64_t(const TrainJob&)> steps = {});

// How long plans may be tried out for a run of so many seconds; without a number, for any.
Seconds longest_trials(std::optional<double> run_seconds = {});

// Tells on standard error that plans are being tried out, so that nobody takes it for a hang.
class TrialNote {
 public:
  explicit TrialNote(Seconds longest) : longest_(longest), progress_(std::cerr) {}
  void on_turn();

 private:
  Seconds longest_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  Progress progress_;
};

// Adds what was seen to the job's profile, and to the stored one if that can be had.
void keep(TrainJob& job, const std::vector<Observation>& seen);

// How the workers of a run spend their time, from step to step, warm-up left out.
class LoadMeter {
 public:
  explicit LoadMeter(const Executor& executor) : executor_(executor) {}

  void on_step();
  void on_rest() { running_ = false; }  // what follows is no step

  // Of all workers' time; nothing before the warm-up is over, or where kernels run on GPUs.
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
