// Whether loading keeps up with computing: how much of the workers' time goes into it, and how long
// steps stood still for it.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "base/ids.h"
#include "exec/executor.h"

namespace regatta {

// How much of a stretch of time went into loading.
struct LoaderShare {
  double share = 0;  // of the time of those workers that load
  Seconds waited{};  // when a step was done and not even the first chunk of the next was loaded;
                     // with workers that only load, not all of it
};

class LoadWatch {
 public:
  using Clock = std::chrono::steady_clock;

  explicit LoadWatch(const Plan& plan);

  // What one step's loads report to.
  struct Step {
    std::shared_ptr<std::atomic<std::int64_t>> busy;  // nanoseconds, of all steps
    // The end of its first load; with workers that only load, of its last so far: a GPU's chunk is
    // loaded in pieces and waits for all of them.
    std::atomic<Clock::rep> loaded;
  };
  // Measures the loads of a step that is about to be submitted.
  std::shared_ptr<Step> watch(StepInput& input) const;

  // Between the ends of the step before and of this one.
  LoaderShare of_step(const Step& step, Clock::time_point begin, Clock::time_point end);
  // Over all steps since the last call.
  LoaderShare of_epoch();

  // One line for the user if loading is what takes the time; empty otherwise.
  std::string verdict(const LoaderShare& epoch, const std::string& data) const;

 private:
  double loading_workers_ = 1;
  bool only_load_ = false;  // they feed GPUs and do nothing else
  std::shared_ptr<std::atomic<std::int64_t>> busy_ = std::make_shared<std::atomic<std::int64_t>>(0);
  std::int64_t counted_ = 0;  // nanoseconds of busy_ already told
  double epoch_busy_ = 0, epoch_room_ = 0;
  Seconds epoch_waited_{};
};

}  // namespace regatta
