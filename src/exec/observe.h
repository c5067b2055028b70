// From the times of a list's tasks to observations that a profile learns from.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "exec/recording.h"
#include "tasks/cost_names.h"

namespace regatta {

// A list that has been carried out; gone after the call that it is given to.
struct ListTimes {
  const Blueprint& blueprint;
  const TaskList& list;
  std::span<const ChunkSpan> spans;  // the live samples of each chunk
  std::span<const TaskTimes> times;  // by task
};
using TimesSink = std::function<void(const ListTimes&)>;

// One for each signature and size that was timed and the number of workers that were busy
// meanwhile, or that share its data: the mean of the list's operators and actions of that kind, or
// of a GPU's tasks, which are one piece. Work that saw other workers come and go is left out: the
// number of busy workers is not known. Work that was interrupted counts as long as its thread ran,
// or not at all if it was for long. `names` must be of the list's blueprint and pass.
// `bookkeeping`: also what is the same however many samples the chunks have, as reductions on CPUs
// are.
std::vector<Observation> observations_of(const ListTimes& done, const CostNames& names,
                                         bool bookkeeping = true);

// The mean over consecutive steps, without those that took much longer than the median. Short
// operators are fast and slow by turns: their medians would add up to less than a typical step.
class StepMean {
 public:
  void add(const ListTimes& done, std::vector<Observation> seen);
  std::vector<Observation> get() const;

 private:
  struct Step {
    double seconds = 0;
    std::vector<Observation> seen = {};
  };
  std::vector<Step> steps_;
};

// Gathers how far the tasks of chunks spread, by the clock: how many times as long each takes as
// most tasks of its kind do. Tasks of a worker that shares its core with a neighbour are far from
// those. Steps that were held up as a whole are left out.
class SpreadMeter {
 public:
  void add(const ListTimes& done);
  bool enough() const;  // for observations, even if half of the steps were held up
  // For tasks of `setting`, with so many workers busy; none if it has seen too few.
  std::vector<Observation> observations(const KernelSetting& setting, int busy) const;

 private:
  using Kind = std::tuple<Phase, std::uint32_t, std::uint32_t, std::int64_t>;  // and samples
  struct Step {
    std::int64_t samples = 0;
    double seconds = 0;  // from its first such task to the end of its last
    std::vector<std::pair<Kind, double>> tasks = {};
  };
  std::map<Kind, std::vector<double>> typical_steps() const;

  std::vector<Step> steps_;
};

// Costs of the runtime beside kernels, from a list that ran alone. For the thread that submits: the
// cost of each task, and of each buffer that a task names.
std::vector<Observation> submission_observations_of(const ListTimes& done);
// For the workers: the gap between two tasks and what each buffer adds to it, waking, and how much
// later each further one starts of those that waited for the same.
std::vector<Observation> start_observations_of(const ListTimes& done);

}  // namespace regatta
