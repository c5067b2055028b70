// Measuring what a network's work costs on this machine: whole steps on real workers, timed
// operator by operator. An operator alone on hot data would be faster than it ever is in training.
#pragma once

#include <memory>
#include <vector>

#include "data/dataset.h"
#include "plan/make_plan.h"
#include "plan/recipe.h"
#include "profile/store.h"

namespace regatta {

struct CalibrationOptions {
  int workers = 1;
  Layout layout = Layout::blocked16;  // of the CPU group
  std::vector<DeviceKind> devices{DeviceKind::cpu};
  Layout gpu_layout = Layout::nhwc;
  Seconds budget{1.5};   // at least a step of each kind is run, however long it takes
  double enough = 0.02;  // half the 95% interval, as a share, at which a size needs no more steps
  bool runtime = true;   // also what the runtime costs
  // Whole chunks and their halves however long they take; else as the budget allows.
  bool whole_chunks = false;
  std::int64_t most_alone = INT64_MAX;  // samples of a chunk, of one worker alone
  // Half a chunk is measured as what a worker has two of, else as half of one.
  bool in_turn = true;
  std::vector<int> teams{};  // also with workers of so many threads each
  // Also cores and a GPU on one batch: parts of a cut batch on the GPU, meetings across memories,
  // gradients that come from both.
  bool shared = false;

  bool uses(DeviceKind kind) const;
};

// Chunks from one sample up to the whole batch, with one worker busy and with all of them, as one
// segment and by blocks. Ends when all is known well enough, or the budget is spent, but for whole
// chunks if they are wanted. No executor may be alive meanwhile. Without data, loading is not
// measured.
std::vector<Observation> calibrate(const Graph& graph, const Recipe& recipe,
                                   const std::shared_ptr<const Dataset>& data,
                                   const CalibrationOptions& options);

// What choosing a plan asks for: the steps it must run take a second or two for small networks, and
// are few for large ones.
std::vector<Observation> calibrate_quickly(const Graph& graph, const Recipe& recipe,
                                           const std::shared_ptr<const Dataset>& data, int workers,
                                           Seconds budget = Seconds(1.5),
                                           const std::vector<int>& more_teams = {});

}  // namespace regatta
