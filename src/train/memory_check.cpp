#include "train/memory_check.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <ranges>

#include "base/error.h"
#include "exec/cuda_runner.h"
#include "exec/runtime.h"
#include "exec/workspace.h"
#include "tasks/footprint.h"

namespace regatta {
namespace {

constexpr const char* copies_kind = "copies for a checkpoint";

std::string megabytes(std::int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f MB", static_cast<double>(bytes) / 1e6);
  return text;
}

// Bytes that a run by this plan takes of a limit besides buffers and workspace, if all that is
// mapped counts. Kernels compile code for each operator once, and each worker has descriptors of
// its own: bounds of what was measured of five networks (docs/measurements.md).
std::int64_t mapped_of(const MemoryLimit& limit, const TrainJob& job, const Plan& plan) {
  constexpr std::int64_t code = 192 << 10, descriptors = 64 << 10;  // of an operator
  if (!limit.counts_mapped) return 0;
  std::int64_t workers = 0;
  for (const DeviceGroup* group : groups_of(plan))
    if (group->kind == DeviceKind::cpu) workers += group->workers;
  const int communicators = job.ranks.place.several() ? 1 : 0;
  return bytes_mapped(limit, threads_of(plan) + communicators) +
         std::ssize(job.graph.nodes()) * (code + workers * descriptors);
}

const MemoryLimit* tightest(const std::vector<MemoryLimit>& limits, const TrainJob& job,
                            const Plan& plan) {
  const auto found = std::ranges::min_element(limits, {}, [&](const MemoryLimit& limit) {
    return limit.left - mapped_of(limit, job, plan);
  });
  return found == limits.end() ? nullptr : &*found;
}

// " needs 900 MB of memory, but ulimit -v with 700 MB has 500 MB left". `what_for` follows
// "memory".
std::string shortage(std::int64_t needed, const MemoryLimit& limit,
                     const std::string& what_for = "") {
  return " needs " + megabytes(needed) + " of memory" + what_for + ", but " + limit.name +
         " with " + megabytes(limit.bytes) + " has " + megabytes(limit.left) + " left";
}

std::size_t sum_of(const BytesByKind& kinds) {
  std::size_t sum = 0;
  for (const auto& [kind, bytes] : kinds) sum += bytes;
  return sum;
}

// " (gradients 400 MB, samples 300 MB, packed parameters 100 MB, the rest 100 MB)": the three
// largest.
std::string largest_kinds(const BytesByKind& kinds) {
  std::vector<std::pair<std::size_t, std::string>> order;
  for (const auto& [kind, bytes] : kinds) order.emplace_back(bytes, kind);
  std::ranges::sort(order, std::greater{});
  std::string text;
  std::size_t told = 0;
  for (const auto& [bytes, kind] : order | std::views::take(3)) {
    text += (text.empty() ? " (" : ", ") + kind + " " + megabytes(static_cast<std::int64_t>(bytes));
    told += bytes;
  }
  if (const std::size_t rest = sum_of(kinds) - told; rest > 0)
    text += ", the rest " + megabytes(static_cast<std::int64_t>(rest));
  return text + ")";
}

// A plan, and where this process stands if it is one rank's part.
struct RankPart {
  Plan plan;
  RankPlace place;
};

// The part of a smaller batch: as many chunks, as long as there is a sample for each. Chunks of
// several ranks stay as many, as the place of each rank is told by their numbers.
RankPart shrunk(RankPart part, std::int64_t batch, std::int64_t smaller) {
  const auto shrink = [&](std::vector<std::int64_t>& chunks) {
    for (std::int64_t& chunk : chunks) chunk = (chunk * smaller + batch - 1) / batch;
  };
  shrink(part.place.chunks);
  for (PlanNode& node : part.plan.nodes)
    for (DeviceGroup& group : node.groups) {
      shrink(group.chunks);
      if (!part.place.several() && std::ssize(group.chunks) > smaller)
        group.chunks.resize(static_cast<std::size_t>(smaller));
      group.lanes = std::min(group.lanes, static_cast<int>(group.chunks.size()));
    }
  return part;
}

bool has_gpu(const Plan& plan) {
  return std::ranges::any_of(
      groups_of(plan), [](const DeviceGroup* group) { return group->kind == DeviceKind::cuda; });
}

// All buffers that the run will have; GPUs' too.
std::vector<Footprint> footprints_of(const TrainJob& job, const Blueprint& blueprint,
                                     Purpose purpose) {
  std::vector<TaskList> lists;
  if (purpose == Purpose::evaluation)
    for (const ListKind each : {ListKind::prepare, ListKind::evaluate})
      lists.push_back(lower(blueprint, each));
  else if (job.recipe.accumulate == 1)
    lists.push_back(lower(blueprint, ListKind::train));
  else
    for (const ListKind each : {ListKind::first, ListKind::middle, ListKind::last})
      lists.push_back(lower(blueprint, each));
  if (job.test && purpose != Purpose::evaluation)
    lists.push_back(lower(blueprint, ListKind::evaluate));
  std::vector<const TaskList*> pointers;
  for (const TaskList& list : lists) pointers.push_back(&list);
  return footprints(blueprint, pointers);
}

Blueprint blueprint_of(const TrainJob& job, const RankPart& part, Purpose purpose) {
  return make_blueprint(job.graph, part.plan, numbers_of(job.recipe),
                        purpose != Purpose::evaluation, part.place);
}

BytesByKind buffers_by_kind(const TrainJob& job, const Blueprint& blueprint, Purpose purpose) {
  BytesByKind kinds;
  std::size_t weights = 0, remembered = 0;
  for (const Footprint& each : footprints_of(job, blueprint, purpose)) {
    if (each.host || blueprint.group(each.group).kind == DeviceKind::cpu)
      kinds[std::string(buffer_kind_name(each.kind))] += each.bytes;
    if (each.host || each.group != blueprint.owner) continue;  // a copy of the owner's
    if (each.kind == BufferKind::parameters || each.kind == BufferKind::state)
      weights += each.bytes;
    if (each.kind == BufferKind::moment || each.kind == BufferKind::average)
      remembered += each.bytes;
  }
  // Writing a checkpoint copies weights and optimizer state, and holds the larger file in memory.
  if (purpose == Purpose::saved_training)
    kinds[copies_kind] = weights + remembered + std::max(weights, remembered);
  return kinds;
}

std::size_t workspace_of(const TrainJob& job, const Blueprint& blueprint, Purpose purpose) {
  return workspace_bytes(blueprint, job.recipe.normalisation,
                         purpose == Purpose::evaluation ? Pass::evaluate : Pass::train);
}

// Bytes by kind that a part of the job needs.
using NeededBy = std::function<BytesByKind(const RankPart& part)>;

// `mapped`: what mapped_of() says of the limit that is asked about.
BytesByKind node_memory(const TrainJob& job, const RankPart& part, Purpose purpose,
                        std::int64_t mapped = 0) {
  const Blueprint blueprint = blueprint_of(job, part, purpose);
  BytesByKind kinds = buffers_by_kind(job, blueprint, purpose);
  if (const std::size_t workspace = workspace_of(job, blueprint, purpose); workspace > 0)
    kinds[workspace_kind] = workspace;
  if (mapped > 0) kinds[runtime_kind] = static_cast<std::size_t>(mapped);
  return kinds;
}

// Bytes of the largest gradient behind a convolution's relu: a GPU's kernel keeps it beside the
// buffers. What cuDNN's own kernels need is known only when they are made, and not counted.
std::size_t gpu_workspace(const Blueprint& blueprint, Purpose purpose) {
  if (purpose == Purpose::evaluation) return 0;
  std::size_t most = 0;
  for (const Chunk& chunk : blueprint.chunks) {
    if (blueprint.group(chunk.group).kind != DeviceKind::cuda) continue;
    for (const Node& node : blueprint.graph.nodes())
      if (node.op->name == "conv" && node.attributes.flag("relu"))
        most =
            std::max(most, blueprint.forms[chunk.group.value][node.id.value].bytes(chunk.capacity));
  }
  return most;
}

BytesByKind gpu_memory(const TrainJob& job, const RankPart& part, Purpose purpose) {
  const Blueprint blueprint = blueprint_of(job, part, purpose);
  BytesByKind kinds;
  if (const std::size_t workspace = gpu_workspace(blueprint, purpose); workspace > 0)
    kinds[workspace_kind] = workspace;
  for (const Footprint& each : footprints_of(job, blueprint, purpose))
    if (!each.host && blueprint.group(each.group).kind == DeviceKind::cuda)
      kinds[std::string(buffer_kind_name(each.kind))] += each.bytes;
  return kinds;
}

// 0 if not even one sample fits.
std::int64_t largest_batch(const TrainJob& job, const RankPart& part, const NeededBy& needed,
                           std::size_t left) {
  std::int64_t fits = 0, too_many = job.recipe.batch;
  while (too_many - fits > 1) {
    const std::int64_t middle = (fits + too_many) / 2;
    const bool room = sum_of(needed(shrunk(part, job.recipe.batch, middle))) <= left;
    (room ? fits : too_many) = middle;
  }
  return fits;
}

[[noreturn]] void refuse(const TrainJob& job, const Plan& plan, const NeededBy& needed,
                         const MemoryLimit& limit, const char* way_out = "") {
  const RankPart part{plan, job.ranks.place};
  const BytesByKind kinds = needed(part);
  const std::int64_t batch = largest_batch(job, part, needed, static_cast<std::size_t>(limit.left));
  throw InputError("--batch " + std::to_string(job.recipe.batch) +
                   shortage(static_cast<std::int64_t>(sum_of(kinds)), limit, largest_kinds(kinds)) +
                   (batch > 0 ? "; --batch " + std::to_string(batch) + " or less fits"
                              : "; not even --batch 1 fits: use a smaller --input or network, or "
                                "raise that limit") +
                   way_out);
}

}  // namespace

std::size_t buffer_bytes_of(const TrainJob& job, const Plan& plan, Purpose purpose) {
  const Blueprint blueprint = blueprint_of(job, {plan, job.ranks.place}, purpose);
  BytesByKind kinds = buffers_by_kind(job, blueprint, purpose);
  kinds.erase(copies_kind);
  return sum_of(kinds);
}

BytesByKind memory_by_kind(const TrainJob& job, const Plan& plan, Purpose purpose) {
  return node_memory(job, {plan, job.ranks.place}, purpose);
}

std::size_t memory_needed(const TrainJob& job, const Plan& plan, Purpose purpose) {
  return sum_of(memory_by_kind(job, plan, purpose));
}

BytesByKind gpu_memory_by_kind(const TrainJob& job, const Plan& plan, Purpose purpose) {
  return gpu_memory(job, {plan, job.ranks.place}, purpose);
}

std::size_t gpu_memory_needed(const TrainJob& job, const Plan& plan, Purpose purpose) {
  return sum_of(gpu_memory_by_kind(job, plan, purpose));
}

bool fits(const TrainJob& job, const Plan& plan, const std::vector<MemoryLimit>& limits,
          Purpose purpose) {
  const MemoryLimit* limit = tightest(limits, job, plan);
  if (!limit) return true;
  const std::int64_t left = limit->left - mapped_of(*limit, job, plan);
  const Blueprint blueprint = blueprint_of(job, {plan, job.ranks.place}, purpose);
  const auto within = [&](std::size_t bytes) { return static_cast<std::int64_t>(bytes) <= left; };
  const std::size_t buffers = sum_of(buffers_by_kind(job, blueprint, purpose));
  return within(buffers) && within(buffers + workspace_of(job, blueprint, purpose));
}

bool fits_gpu(const TrainJob& job, const Plan& plan, const MemoryLimit& limit, Purpose purpose) {
  return gpu_memory_needed(job, plan, purpose) <= static_cast<std::size_t>(limit.left);
}

bool fits_here(const TrainJob& job, const Plan& plan) {
  return fits(job, plan, memory_limits()) &&
         (!has_gpu(plan) || fits_gpu(job, plan, gpu_memory_limit()));
}

void require_memory(const TrainJob& job, const Plan& plan, const std::vector<MemoryLimit>& limits,
                    Purpose purpose) {
  if (!fits(job, plan, limits, purpose)) {
    const MemoryLimit& limit = *tightest(limits, job, plan);
    const std::int64_t mapped = mapped_of(limit, job, plan);
    refuse(
        job, plan, [&](const RankPart& part) { return node_memory(job, part, purpose, mapped); },
        limit);
  }
  if (has_gpu(plan)) require_gpu_memory(job, plan, gpu_memory_limit(), purpose);
}

void require_gpu_memory(const TrainJob& job, const Plan& plan, const MemoryLimit& limit,
                        Purpose purpose) {
  if (!fits_gpu(job, plan, limit, purpose))
    refuse(
        job, plan, [&](const RankPart& part) { return gpu_memory(job, part, purpose); }, limit,
        ", or --devices cpu");
}

void require_memory_of_data(const std::string& spec, Split split,
                            const std::vector<MemoryLimit>& limits) {
  const auto limit = std::ranges::min_element(limits, {}, &MemoryLimit::left);
  const std::int64_t needed = bytes_read_into_memory(spec, split);
  if (limit == limits.end() || needed <= limit->left) return;
  throw InputError(
      "data '" + spec + "'" + shortage(needed, *limit) +
      "; shards are not read into memory: regatta data prepare makes them on a machine "
      "with more, or raise that limit");
}

}  // namespace regatta
