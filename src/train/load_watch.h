// Whether loading keeps up with computing: how much of the workers' time goes into it, and how long
// steps stood still for it.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/ids.h"
#include "exec/executor.h"
#include "regatta/epoch.h"

namespace regatta {

// How much of a stretch of time went into loading.
struct LoaderUse {
  double share = 0;    // of the time of those workers that load
  Seconds waited{};    // when a step was done and not even the first chunk of the next was loaded;
                       // on a GPU that others load for, not all of the next
  Seconds lasted{};    // the stretch
  LoadingTimes times;  // what the loading did, in seconds of workers; a team counts as one

  double waited_share() const { return lasted.count() > 0 ? waited / lasted : 0; }
};

class LoadWatch {
 public:
  using Clock = std::chrono::steady_clock;

  explicit LoadWatch(const Plan& plan);

  // Seconds of loading by stage, of all loading workers and all steps so far.
  class Sums {
   public:
    void add(const LoadingTimes& more) {
      const std::lock_guard lock(mutex_);
      times_ += more;
    }
    LoadingTimes take() {
      const std::lock_guard lock(mutex_);
      return std::exchange(times_, {});
    }

   private:
    std::mutex mutex_;
    LoadingTimes times_;
  };
  // What one step's loads report to.
  struct Step {
    std::shared_ptr<Sums> sums;
    // When the first load had ended. With workers that only load: when the last had so far, and
    // when the last samples had come to a GPU, whose chunk waits for all its pieces; 0: none has.
    std::atomic<Clock::rep> loaded, sent = Clock::rep{0};
  };
  // Measures the loads of a step that is about to be submitted.
  std::shared_ptr<Step> watch(StepInput& input) const;

  // Between the ends of the step before and of this one.
  LoaderUse of_step(const Step& step, Clock::time_point begin, Clock::time_point end);
  // Over all steps since the last call.
  LoaderUse of_epoch();

  // One line for the user if loading is what takes the time; empty otherwise.
  std::string verdict(const LoaderUse& epoch, const std::string& data) const;

 private:
  LoaderUse use_of(Seconds waited, Seconds lasted, const LoadingTimes& times) const;

  double loading_workers_ = 1;  // a team counts as one
  double team_ = 1;             // threads of a worker, each of which loads a part of its chunk
  bool only_load_ = false;      // they feed GPUs and do nothing else
  std::shared_ptr<Sums> sums_ = std::make_shared<Sums>();
  Seconds epoch_waited_{}, epoch_lasted_{};
  LoadingTimes epoch_times_;
};

}  // namespace regatta
