// What each task of a training step typically takes.
#pragma once

#include <span>
#include <vector>

#include "exec/observe.h"
#include "profile/robust.h"

namespace regatta {

class TaskMedians {
 public:
  void add(const ListTimes& done) {
    if (done.list.job != ListKind::train) return;
    std::vector<double> seconds;
    for (const TaskTimes& each : done.times)
      seconds.push_back(Seconds(each.end - each.start).count());
    add(seconds);
  }
  // Seconds, by task.
  void add(std::span<const double> seconds) {
    ++count_;
    seconds_.resize(seconds.size());
    for (std::size_t t = 0; t < seconds.size(); ++t) seconds_[t].push_back(seconds[t]);
  }
  std::size_t count() const { return count_; }  // of steps, or whatever was added
  // By task; 0 of those that were never seen.
  std::vector<double> get() const {
    std::vector<double> medians;
    for (const std::vector<double>& each : seconds_) medians.push_back(median(each));
    return medians;
  }

 private:
  std::vector<std::vector<double>> seconds_;  // by task
  std::size_t count_ = 0;
};

}  // namespace regatta
