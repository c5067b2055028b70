// Steps of one plan, cut into equal chunks, on fewer live samples or more, and what their work
// took: what calibrate() is made of.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "tune/calibrate.h"

namespace regatta {

class CalibrationCell {
 public:
  using Clock = std::chrono::steady_clock;
  struct Sizes {
    bool whole = false;  // the largest however long it takes
    bool half = true;    // also half of it
    std::int64_t most = INT64_MAX;
  };

  // Its executor lives as long as it does. `options` stay.
  CalibrationCell(const Graph& graph, const Recipe& recipe, std::shared_ptr<const Dataset> data,
                  const CalibrationOptions& options, const PlanOptions& plan, const Sizes& sizes);
  ~CalibrationCell();

  // Until all sizes are known well enough or time is up.
  std::vector<Observation> measure(Seconds time);
  // Whole chunks alone.
  std::vector<Observation> measure_whole(Seconds time);
  // Whole chunks alone, of a plan with several segments: only the operators that take longer there.
  std::vector<Observation> measure_segments(Seconds time);
  // What the runtime takes to start tasks, from a plan of many that meet.
  std::vector<Observation> measure_starts(Clock::time_point until);
  // What it takes to submit them.
  std::vector<Observation> measure_submission(Clock::time_point until);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta
