// Measuring what a network's work costs on this machine: whole steps on real workers, timed
// operator by operator. An operator alone on hot data would be faster than it ever is in training.
#pragma once

#include <functional>
#include <vector>

#include "train/job.h"

namespace regatta {

struct CalibrationOptions {
  int workers = 1;
  std::vector<DeviceKind> devices{DeviceKind::cpu};
  // How the run will cut and gather a GPU's work, by layout, chunks, segments and recomputation: a
  // GPU's task is measured as a whole, so that what was measured holds for the same cut alone.
  PlanOptions gpu = {};
  Seconds budget{1.5};   // at least a step of each kind is run, however long it takes
  double enough = 0.02;  // half the 95% interval, as a share, at which a size needs no more steps
  bool runtime = true;   // also what the runtime costs
  // Whole chunks and their halves however long they take; else as the budget allows.
  bool whole_chunks = false;
  std::int64_t most_alone = INT64_MAX;  // samples of a chunk, of one worker alone
  // Half a chunk is measured as what a worker has two of, else as half of one.
  bool in_turn = true;
  std::vector<int> teams{};  // also with workers of so many threads each
  // Also teams on batches that are cut at meeting points, as those of several nodes are even if
  // each node has one team and one chunk.
  bool teams_of_nodes = false;
  // Also cores and a GPU on one batch: parts of a cut batch on the GPU, meetings across memories,
  // gradients that come from both.
  bool shared = false;
  // Plans that do not fit into memory are not measured; none: all fit.
  std::function<bool(const Plan& plan)> fits = {};

  bool uses(DeviceKind kind) const;
};

// What choosing a plan asks for: the steps it must run take a second or two for small networks, and
// are few for large ones. `more_teams`: beside those that may win without a GPU.
CalibrationOptions quick_calibration(const TrainJob& job, int workers,
                                     const std::vector<int>& more_teams = {});

// Chunks from one sample up to the whole batch, with one worker busy and with all of them, as one
// segment and by blocks. Ends when all is known well enough, or the budget is spent, but for whole
// chunks if they are wanted. The job's plan does not matter. No executor may be alive meanwhile.
std::vector<Observation> calibrate(const TrainJob& job, const CalibrationOptions& options);

}  // namespace regatta
