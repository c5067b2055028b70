// Flags -> plan. Whatever a flag leaves open is chosen here.
#pragma once

#include <optional>
#include <string>

#include "plan/plan.h"
#include "plan/recipe.h"

namespace regatta {

struct PlanOptions {
  int workers = 1;  // CPUs to use: with teams there are fewer workers, each of `team` threads
  int cpus = 0;     // that there are; 0: more than are used
  std::optional<int> team = std::nullopt;  // default: 1
  Layout layout = Layout::blocked16;       // of the CPU group
  // Sizes; one number n means n equal chunks. With several devices it cuts the CPU's share.
  std::optional<std::vector<std::int64_t>> chunks = std::nullopt;
  std::optional<std::string> segments = std::nullopt;
  // Segments whose forward runs again in backward, see mark_recomputed; default: none.
  std::optional<std::string> recompute = std::nullopt;
  Reduction reduction = Reduction::slots;
  std::optional<Backward> backward = std::nullopt;  // default: whole
  std::string scheduler = own_scheduler;
  PerfModel perf_model = PerfModel::fitted;
  bool deterministic = false;

  std::optional<int> loaders = std::nullopt;          // for a GPU without a CPU group
  std::optional<int> steps_in_flight = std::nullopt;  // 1 computes while the others are loaded

  std::vector<DeviceKind> devices{DeviceKind::cpu};
  // --devices auto beside a GPU: `devices` is {cuda}, but cores alone or both may be chosen.
  bool devices_open = false;
  std::optional<std::vector<std::int64_t>> shares = std::nullopt;  // samples, one per device
  std::optional<Layout> gpu_layout = std::nullopt;                 // default: nhwc
  double gpu_slowness = 1;  // how many times as long a GPU is to take for its tasks
};

// One node. Chunks of CPUs are large enough that scheduling stays small beside work, and no more
// than there are workers; with `deterministic` the number of workers has no say in them. A GPU
// takes its share whole.
Plan make_plan(const Graph& graph, const Recipe& recipe, const PlanOptions& options);

// How many of options.workers may compute: a GPU's own thread never sleeps and keeps a CPU.
int cpus_to_compute(const PlanOptions& options);

// "cpu", "cuda" or "cpu,cuda".
std::vector<DeviceKind> devices_named(const std::string& text);

// `count` chunks of a batch, sizes as equal as whole samples allow; all but the last are multiples
// of `granule`.
std::vector<std::int64_t> equal_chunks(std::int64_t batch, std::int64_t count,
                                       std::int64_t granule = 1);

// Throws InputError that names `flag` unless `sizes`, which it gave, cut so many samples, between
// groups of `granule` samples.
void require_sizes(const std::string& flag, const std::vector<std::int64_t>& sizes,
                   std::int64_t samples, std::int64_t granule);

// FLOPs of one training step on one sample.
double step_flops(const Graph& graph);

}  // namespace regatta
