// The steps of a run as a curve that stays small however long the run is: later on, a point tells
// of several steps together, with the extremes of their losses.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/json.h"

namespace regatta::trace {

// Consecutive steps told as one: a line of metrics.jsonl, a point of a curve.
struct StepStretch {
  std::int64_t step = 0;   // the last of them, counted from 1
  std::int64_t steps = 1;  // how many they are
  double loss = 0;         // their mean, and their extremes
  double loss_min = 0, loss_max = 0;
  double learning_rate = 0;  // of the last
  double images_per_s = 0;   // of all together
  double loader_share = 0;   // their mean
  double data_wait = 0;      // the mean share of a step in which it waited for its first samples

  void add(const StepStretch& next);  // the stretch that follows it
};

// As metrics.jsonl has it: `steps`, `loss_min` and `loss_max` are left out of a single step.
Json to_json(const StepStretch& stretch);
std::optional<StepStretch> stretch_of(const Json& line);  // nothing if it tells of no steps

// How many steps a line about this step is to tell of: 1 up to step 20,000, 2 up to 40,000, then 4
// and so on. So there are 20,000 lines at first, and 10,000 more each time the run gets twice as
// long: 110,000, about 20 MB, for ten million steps.
std::int64_t steps_a_line(std::int64_t step);

// At most `most` points: when there are that many, each two neighbours become one.
class StepCurve {
 public:
  StepCurve() = default;
  explicit StepCurve(std::size_t most) : most_(most) {}  // an even number

  void add(const StepStretch& next);
  // The last one may tell of fewer steps than the others.
  const std::vector<StepStretch>& points() const { return points_; }
  bool empty() const { return points_.empty(); }

 private:
  std::size_t most_ = 10000;  // more than a chart has pixels
  std::int64_t longest_ = 1;  // steps of a point
  std::vector<StepStretch> points_;
};

}  // namespace regatta::trace
