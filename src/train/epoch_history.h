// The epochs of a run, of which there may be millions: a small data set's take milliseconds.
#pragma once

#include <vector>

#include "train/loop.h"

namespace regatta {

class EpochHistory {
 public:
  explicit EpochHistory(std::size_t most = 10000) : most_(most) {}  // more than a chart has pixels

  void add(const EpochRecord& record);
  // All of them while there are few. Of `most` at least half go; in each stretch of the run those
  // with the lowest and the highest loss (of the test, if there is one) stay, and so does the last.
  const std::vector<EpochRecord>& epochs() const { return epochs_; }
  // The share of loading in the workers' time: the mean over all epochs there were, weighted by
  // their durations.
  double loader_share() const { return seconds_ > 0 ? loading_seconds_ / seconds_ : 0; }
  double data_wait() const { return seconds_ > 0 ? waited_seconds_ / seconds_ : 0; }
  const LoadingTimes& loading() const { return loading_; }  // of all epochs there were

 private:
  std::size_t most_;
  std::vector<EpochRecord> epochs_;
  double loading_seconds_ = 0, waited_seconds_ = 0, seconds_ = 0;
  LoadingTimes loading_;
};

}  // namespace regatta
