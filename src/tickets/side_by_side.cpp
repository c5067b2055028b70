#include "tickets/side_by_side.h"

#include <algorithm>
#include <numeric>

namespace regatta::tickets {
namespace {

// A number of slots must be this much faster than the best one before. Equal jobs differ by a few
// percent from run to run.
constexpr double least_gain = 1.05;

}  // namespace

SideBySide SideBySide::by_trial(int most) {
  SideBySide trial(1);
  trial.most_ = most;
  trial.decided_ = most <= 1;
  return trial;
}

void SideBySide::measured(int slots, double images_per_s) {
  if (decided_ || slots != slots_ || images_per_s <= 0) return;
  rates_.push_back(images_per_s);
  if (rates_.size() < static_cast<std::size_t>(slots_)) return;
  const double rate = std::accumulate(rates_.begin(), rates_.end(), 0.0);
  rates_.clear();
  const bool gain = rate > least_gain * best_rate_;
  if (gain) {
    best_rate_ = rate;
    best_slots_ = slots_;
  }
  if (!gain || 2 * slots_ > most_) {
    slots_ = best_slots_;
    decided_ = true;
  } else {
    slots_ *= 2;
  }
}

}  // namespace regatta::tickets
