// How fast a run trains: its throughput and its typical step, from running sums, so that memory
// stays the same however many steps there are.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"

namespace regatta {

// The typical step: the median over 10 to 19 stretches of equal length of the mean step in each. A
// rare stall does not move it. Steps in flight together may end together, so the median of single
// steps would be too short.
class TypicalStep {
 public:
  void add(double seconds);
  double seconds() const;  // 0 before the first step

 private:
  std::vector<double> sums_;     // seconds, of each full stretch
  std::int64_t length_ = 1;      // steps of a stretch
  std::int64_t open_steps_ = 0;  // of the stretch that is not full yet
  double open_sum_ = 0;
};
double typical_seconds(std::span<const double> steps);

// What train() tells of a run. The first ten steps warm up and are left out; of a run with less
// than twenty, the first half.
struct Speed {
  // Throughput: images over the wall-clock time of training after warm-up. All stalls count,
  // waiting for data and writing checkpoints between steps too; tests between epochs do not.
  double images_per_s = 0;
  double typical_step_s = 0;  // see TypicalStep: without rare stalls
  // The share of the workers' CPU time that others took; none where the system does not tell.
  std::optional<double> taken_by_others = {};
};

// Gathers a Speed step by step.
class SpeedMeter {
 public:
  static constexpr std::size_t warm_up_steps = 10;

  // `seconds`: since the step before it ended, without a test in between.
  void add(Seconds seconds, std::int64_t images);
  std::size_t steps() const { return steps_; }
  Speed speed() const;

 private:
  struct Step {
    double seconds = 0, images = 0;
  };
  struct Sums {
    double seconds = 0, images = 0;
    TypicalStep typical = {};
    void add(const Step& step);
  };
  std::size_t steps_ = 0;
  std::vector<Step> first_;  // twice the warm-up at most: it may turn out to be all there is
  Sums rest_;                // from the end of the warm-up on, if the run is longer than that
};

}  // namespace regatta
