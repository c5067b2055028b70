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
  enum class Of {
    all_sizes,
    // In a plan with two chunks for each worker, each finds its data as cold as the other left it.
    whole_chunks,
    // Only the operators that take longer in a plan with several segments. On whole chunks alone:
    // small ones, in one segment, find all their data in the caches, as whole ones do not.
    segments
  };
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
  std::vector<Observation> measure(Of of, Seconds time);
  // What the runtime takes to start tasks, from a plan of many that meet.
  std::vector<Observation> measure_starts();
  // How long the submitting thread takes for such tasks.
  std::vector<Observation> measure_submission();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta
