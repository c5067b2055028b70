#include "plan/make_plan.h"

#include <algorithm>

#include "base/error.h"
#include "graph/op.h"
#include "graph/program.h"
#include "plan/segments.h"

namespace regatta {
namespace {

// Until costs are measured: a core's sustained rate over a whole step, and the least time worth a
// chunk of its own. A task costs about 10 us, a cut adds a reduction.
constexpr double assumed_flops_per_second = 20e9;
constexpr double least_chunk_seconds = 200e-6;
constexpr std::int64_t deterministic_chunks = 8;

int teams_of(const PlanOptions& options) {
  return std::max(cpus_to_compute(options) / options.team.value_or(1), 1);
}

std::int64_t default_chunk_count(const Graph& graph, std::int64_t samples,
                                 const PlanOptions& options) {
  const double seconds =
      step_flops(graph) * static_cast<double>(samples) / assumed_flops_per_second;
  const auto worthwhile = static_cast<std::int64_t>(seconds / least_chunk_seconds);
  const std::int64_t most = options.deterministic ? deterministic_chunks : teams_of(options);
  return std::clamp<std::int64_t>(worthwhile, 1, std::min(most, granules_of(graph, samples)));
}

std::vector<std::int64_t> chunks_for(const Graph& graph, std::int64_t samples,
                                     const PlanOptions& options) {
  const std::int64_t granule = granule_of(graph), most = granules_of(graph, samples);
  if (!options.chunks)
    return equal_chunks(samples, default_chunk_count(graph, samples, options), granule);
  if (options.chunks->size() > 1) {
    require_sizes("--chunks", *options.chunks, samples, granule);
    return *options.chunks;
  }
  const std::int64_t count = options.chunks->front();
  if (count < 1 || count > most)
    throw InputError("--chunks " + std::to_string(count) + ": use 1 to " + std::to_string(most) +
                     (granule > 1 ? ", the batch norm's groups of " + std::to_string(granule) +
                                        " samples, or a list of sizes"
                                  : ", the samples to cut, or a list of sizes"));
  return equal_chunks(samples, count, granule);
}

DeviceGroup cpu_group(const Graph& graph, std::int64_t share, const PlanOptions& options) {
  DeviceGroup cpu;
  cpu.layout = options.layout;
  cpu.chunks = chunks_for(graph, share, options);
  const int count = static_cast<int>(cpu.chunks.size());
  // One chunk and one segment make a chain: a second worker would only disturb the first.
  const bool chain = count == 1 && options.segments.value_or("step") == "step";
  cpu.workers = chain ? 1 : teams_of(options);
  cpu.team = options.team.value_or(1);
  cpu.lanes = options.deterministic
                  ? static_cast<int>(std::min<std::int64_t>(count, deterministic_chunks))
                  : std::min(count, cpu.workers);
  return cpu;
}

DeviceGroup cuda_group(const Graph& graph, std::int64_t share, const PlanOptions& options) {
  DeviceGroup gpu{.name = "cuda",
                  .kind = DeviceKind::cuda,
                  .workers = 1,
                  .layout = options.gpu_layout.value_or(Layout::nhwc),
                  .chunks = {share},
                  .lanes = 1};
  if (options.devices.size() == 1 && options.chunks) gpu.chunks = chunks_for(graph, share, options);
  if (options.gpu_slowness > 1) gpu.slow = {options.gpu_slowness};
  return gpu;
}

std::vector<std::int64_t> shares_for(std::int64_t batch, std::int64_t granule,
                                     const PlanOptions& options) {
  if (options.devices.size() == 1) {
    if (options.shares)
      throw InputError("--shares: the one device takes the whole batch; name several in --devices");
    return {batch};
  }
  if (!options.shares)
    throw InputError("several devices need --shares: samples of the batch of " +
                     std::to_string(batch) + " for each of --devices, such as --shares " +
                     std::to_string(batch / 8) + "," + std::to_string(batch - batch / 8));
  if (options.shares->size() != options.devices.size())
    throw InputError("--shares names " + std::to_string(options.shares->size()) + " numbers for " +
                     std::to_string(options.devices.size()) + " devices");
  require_sizes("--shares", *options.shares, batch, granule);
  return *options.shares;
}

// The thread that submits and the GPU's own keep a CPU each. More loaders than 16 have not been
// needed by any GPU; each of them keeps a CPU busy, at work or not.
int default_loaders(const PlanOptions& options) { return std::clamp(options.workers - 2, 1, 16); }

}  // namespace

int cpus_to_compute(const PlanOptions& options) {
  const auto gpus = static_cast<int>(std::ranges::count(options.devices, DeviceKind::cuda));
  if (gpus == 0 || options.cpus == 0) return options.workers;
  return std::max(std::min(options.workers, options.cpus - gpus), 1);
}

double step_flops(const Graph& graph) {
  double total = 0;
  for (const Node& node : graph.nodes()) {
    const Cost cost = node.op->cost(node, input_shapes(graph, node));
    total += cost.forward_flops + cost.backward_flops;
  }
  return total;
}

std::vector<std::int64_t> equal_chunks(std::int64_t batch, std::int64_t count,
                                       std::int64_t granule) {
  const std::int64_t pieces = (batch + granule - 1) / granule;
  const auto end = [&](std::int64_t i) { return std::min(batch, pieces * i / count * granule); };
  std::vector<std::int64_t> chunks;
  for (std::int64_t i = 0; i < count; ++i) chunks.push_back(end(i + 1) - end(i));
  return chunks;
}

void require_sizes(const std::string& flag, const std::vector<std::int64_t>& sizes,
                   std::int64_t samples, std::int64_t granule) {
  std::string given = flag;
  std::int64_t sum = 0;
  for (const std::int64_t each : sizes) {
    given += (sum > 0 ? "," : " ") + std::to_string(each);
    if (each < 1) throw InputError(flag + ": each of its sizes is a sample at least");
    sum += each;
  }
  if (sum != samples)
    throw InputError(given + " are " + std::to_string(sum) + " samples, and there are " +
                     std::to_string(samples) + " to cut: give sizes that add up to them");
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i)
    if (sizes[i] % granule != 0)
      throw InputError(given + ": " + std::to_string(sizes[i]) +
                       " samples break up batch norm's groups; all sizes but the last are "
                       "multiples of " +
                       std::to_string(granule));
}

std::vector<DeviceKind> devices_named(const std::string& text) {
  if (text == "cpu") return {DeviceKind::cpu};
  if (text == "cuda") return {DeviceKind::cuda};
  if (text == "cpu,cuda") return {DeviceKind::cpu, DeviceKind::cuda};
  if (text == "cuda,cpu") return {DeviceKind::cuda, DeviceKind::cpu};
  throw InputError("--devices " + text + ": use auto, cpu, cuda or cpu,cuda");
}

Plan make_plan(const Graph& graph, const Recipe& recipe, const PlanOptions& options) {
  if (options.team && (*options.team < 1 || *options.team > options.workers))
    throw InputError("--team " + std::to_string(*options.team) + ": use 1 to " +
                     std::to_string(options.workers) + ", the --workers to form teams of");
  Plan plan;
  plan.recipe = recipe.fingerprint();
  plan.segments = segments_named(graph, options.segments.value_or("step"));
  mark_recomputed(plan.segments, options.recompute);
  plan.reduction = options.reduction;
  plan.backward = options.backward.value_or(Backward::whole);
  plan.scheduler = options.scheduler;
  plan.perf_model = options.perf_model;
  plan.deterministic = options.deterministic;

  PlanNode node;
  const std::vector<std::int64_t> shares = shares_for(recipe.batch, granule_of(graph), options);
  bool cpu = false;
  for (std::size_t i = 0; i < options.devices.size(); ++i) {
    const bool this_cpu = options.devices[i] == DeviceKind::cpu;
    cpu = cpu || this_cpu;
    node.groups.push_back(this_cpu ? cpu_group(graph, shares[i], options)
                                   : cuda_group(graph, shares[i], options));
  }
  if (cpu && options.loaders && !options.devices_open)
    throw InputError(
        "--loaders is for a GPU alone: CPU workers that compute load as well, and --workers says "
        "how many");
  // A GPU is fed by CPU workers of its own where no CPU group could do it.
  // It takes the step in one pass: its tasks run one after another anyway.
  if (!cpu) {
    plan.loaders = options.loaders.value_or(default_loaders(options));
    plan.bucket_bytes = std::int64_t{1} << 40;
  }
  const bool gpu = std::ranges::find(options.devices, DeviceKind::cuda) != options.devices.end();
  // Loading for one step may then last as long as several steps take on the GPU.
  constexpr int ahead_of_gpu = 4;
  plan.steps_in_flight =
      options.steps_in_flight.value_or(gpu ? ahead_of_gpu : plan.steps_in_flight);
  if (cpu && recipe.precision == Precision::tf32)
    throw InputError("--precision " + std::string(precision_name(recipe.precision)) +
                     " is for GPUs: use --devices cuda");
  plan.nodes = {node};
  plan.cpus = options.cpus;
  return plan;
}

}  // namespace regatta
