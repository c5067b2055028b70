#include "train/memory_check.h"

#include <algorithm>
#include <cstdio>
#include <functional>

#include "base/error.h"
#include "exec/cuda_runner.h"
#include "tasks/footprint.h"

namespace regatta {
namespace {

std::string megabytes(std::int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f MB", static_cast<double>(bytes) / 1e6);
  return text;
}

const MemoryLimit* tightest(const std::vector<MemoryLimit>& limits) {
  const auto found = std::ranges::min_element(limits, {}, &MemoryLimit::left);
  return found == limits.end() ? nullptr : &*found;
}

// " needs 900 MB of memory, but ulimit -v with 700 MB has 500 MB left"
std::string shortage(std::int64_t needed, const MemoryLimit& limit) {
  return " needs " + megabytes(needed) + " of memory, but " + limit.name + " with " +
         megabytes(limit.bytes) + " has " + megabytes(limit.left) + " left";
}

// The plan for a smaller batch: as many chunks, as long as there is a sample for each.
Plan shrunk(Plan plan, std::int64_t batch, std::int64_t smaller) {
  for (PlanNode& node : plan.nodes)
    for (DeviceGroup& group : node.groups) {
      for (std::int64_t& chunk : group.chunks) chunk = (chunk * smaller + batch - 1) / batch;
      if (std::ssize(group.chunks) > smaller)
        group.chunks.resize(static_cast<std::size_t>(smaller));
      group.lanes = std::min(group.lanes, static_cast<int>(group.chunks.size()));
    }
  return plan;
}

bool has_gpu(const Plan& plan) {
  return std::ranges::any_of(
      groups_of(plan), [](const DeviceGroup* group) { return group->kind == DeviceKind::cuda; });
}

// All buffers that the run will have; GPUs' too.
std::vector<Footprint> footprints_of(const TrainJob& job, const Blueprint& blueprint) {
  std::vector<TaskList> lists;
  if (job.recipe.accumulate == 1)
    lists.push_back(lower(blueprint, ListKind::train));
  else
    for (const ListKind each : {ListKind::first, ListKind::middle, ListKind::last})
      lists.push_back(lower(blueprint, each));
  if (job.test) lists.push_back(lower(blueprint, ListKind::evaluate));
  std::vector<const TaskList*> pointers;
  for (const TaskList& list : lists) pointers.push_back(&list);
  return footprints(blueprint, pointers);
}

struct Needed {
  std::size_t buffers = 0, checkpoint = 0;  // bytes
};
Needed needed_by(const TrainJob& job, const Plan& plan) {
  const Blueprint blueprint = make_blueprint(job.graph, plan, numbers_of(job.recipe), true);
  Needed needed;
  std::size_t weights = 0, remembered = 0;
  for (const Footprint& each : footprints_of(job, blueprint)) {
    if (each.host || blueprint.group(each.group).kind == DeviceKind::cpu)
      needed.buffers += each.bytes;
    if (each.host || each.group != blueprint.owner) continue;  // a copy of the owner's
    if (each.kind == BufferKind::parameters || each.kind == BufferKind::state)
      weights += each.bytes;
    if (each.kind == BufferKind::moment || each.kind == BufferKind::average)
      remembered += each.bytes;
  }
  // Writing a checkpoint copies weights and optimizer state, and holds the larger file in memory.
  needed.checkpoint = weights + remembered + std::max(weights, remembered);
  return needed;
}

}  // namespace

std::size_t buffer_bytes_of(const TrainJob& job, const Plan& plan) {
  return needed_by(job, plan).buffers;
}

std::size_t memory_needed(const TrainJob& job, const Plan& plan, Saving saving) {
  const Needed needed = needed_by(job, plan);
  return needed.buffers + (saving == Saving::checkpoints ? needed.checkpoint : 0);
}

std::size_t gpu_memory_needed(const TrainJob& job, const Plan& plan) {
  const Blueprint blueprint = make_blueprint(job.graph, plan, numbers_of(job.recipe), true);
  std::size_t bytes = 0;
  for (const Footprint& each : footprints_of(job, blueprint))
    if (!each.host && blueprint.group(each.group).kind == DeviceKind::cuda) bytes += each.bytes;
  return bytes;
}

bool fits(const TrainJob& job, const Plan& plan, const std::vector<MemoryLimit>& limits,
          Saving saving) {
  const MemoryLimit* limit = tightest(limits);
  return !limit || memory_needed(job, plan, saving) <= static_cast<std::size_t>(limit->left);
}

bool fits_gpu(const TrainJob& job, const Plan& plan, const MemoryLimit& limit) {
  return gpu_memory_needed(job, plan) <= static_cast<std::size_t>(limit.left);
}

bool fits_here(const TrainJob& job, const Plan& plan) {
  return fits(job, plan, memory_limits()) &&
         (!has_gpu(plan) || fits_gpu(job, plan, gpu_memory_limit()));
}

namespace {

// Bytes that a plan of the job needs.
using BytesNeeded = std::function<std::size_t(const Plan& plan)>;

// 0 if not even one sample fits.
std::int64_t largest_batch(const TrainJob& job, const Plan& plan, const BytesNeeded& needed,
                           std::size_t left) {
  std::int64_t fits = 0, too_many = job.recipe.batch;
  while (too_many - fits > 1) {
    const std::int64_t middle = (fits + too_many) / 2;
    (needed(shrunk(plan, job.recipe.batch, middle)) <= left ? fits : too_many) = middle;
  }
  return fits;
}

[[noreturn]] void refuse(const TrainJob& job, const Plan& plan, const BytesNeeded& needed,
                         const MemoryLimit& limit, const char* way_out = "") {
  const auto left = static_cast<std::size_t>(limit.left);
  const std::int64_t batch = largest_batch(job, plan, needed, left);
  throw InputError("--batch " + std::to_string(job.recipe.batch) +
                   shortage(static_cast<std::int64_t>(needed(plan)), limit) +
                   (batch > 0 ? "; --batch " + std::to_string(batch) + " or less fits"
                              : "; not even --batch 1 fits: use a smaller --input or network") +
                   way_out);
}

}  // namespace

void require_memory(const TrainJob& job, const Plan& plan, const std::vector<MemoryLimit>& limits,
                    Saving saving) {
  if (!fits(job, plan, limits, saving))
    refuse(
        job, plan, [&](const Plan& each) { return memory_needed(job, each, saving); },
        *tightest(limits));
  if (has_gpu(plan)) require_gpu_memory(job, plan, gpu_memory_limit());
}

void require_gpu_memory(const TrainJob& job, const Plan& plan, const MemoryLimit& limit) {
  const BytesNeeded needed = [&](const Plan& each) { return gpu_memory_needed(job, each); };
  if (!fits_gpu(job, plan, limit)) refuse(job, plan, needed, limit, ", or --devices cpu");
}

void require_memory_of_data(const std::string& spec, Split split,
                            const std::vector<MemoryLimit>& limits) {
  const MemoryLimit* limit = tightest(limits);
  const std::int64_t needed = bytes_read_into_memory(spec, split);
  if (!limit || needed <= limit->left) return;
  throw InputError(
      "data '" + spec + "'" + shortage(needed, *limit) +
      "; shards are not read into memory: regatta data prepare makes them on a machine "
      "with more, or raise that limit");
}

}  // namespace regatta
