// Measuring what the work of one plan takes, operator by operator: steps on few live samples of
// each chunk, and on more. What calibrate() is made of.
#pragma once

#include <cstdint>
#include <vector>

#include "train/job.h"

namespace regatta {

// A plan of equal chunks that is run for calibration, and which of its costs are measured.
struct Measurement {
  enum class Of {
    all_sizes,
    // In a plan with two chunks for each worker, each finds its data as cold as the other left it.
    whole_chunks,
    // Only the operators that take longer in a plan with several segments. On whole chunks alone:
    // small ones, in one segment, find all their data in the caches, as whole ones do not.
    segments
  };
  PlanOptions plan;
  Of of = Of::all_sizes;
  bool whole = false;             // the largest size however long it takes
  bool half = true;               // also half of it
  std::int64_t most = INT64_MAX;  // samples of a chunk
  bool helps_others = false;      // only useful in addition to other measurements
};

// Until half the 95% interval of every size is below `enough`, as a share, or time is up.
std::vector<Observation> measure_work(const TrainJob& job, const Measurement& wanted, double enough,
                                      Seconds time);

}  // namespace regatta
