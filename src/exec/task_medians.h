// What each task of a training step typically takes.
#pragma once

#include <vector>

#include "exec/observe.h"
#include "profile/robust.h"

namespace regatta {

class TaskMedians {
 public:
  void add(const ListTimes& done) {
    if (done.list.job != ListKind::train) return;
    seconds_.resize(done.times.size());
    for (std::size_t t = 0; t < done.times.size(); ++t)
      seconds_[t].push_back(
          std::chrono::duration<double>(done.times[t].end - done.times[t].start).count());
  }
  // By task; 0 of those that were never seen.
  std::vector<double> get() const {
    std::vector<double> medians;
    for (const std::vector<double>& each : seconds_) medians.push_back(median(each));
    return medians;
  }

 private:
  std::vector<std::vector<double>> seconds_;
};

}  // namespace regatta
