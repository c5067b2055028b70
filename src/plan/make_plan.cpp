#include "plan/make_plan.h"

#include <algorithm>

#include "base/error.h"
#include "graph/op.h"
#include "plan/segments.h"

namespace regatta {
namespace {

// Until costs are measured: a core's sustained rate over a whole step, and the least time worth a
// chunk of its own. A task costs about 10 us, a cut adds a reduction.
constexpr double assumed_flops_per_second = 20e9;
constexpr double least_chunk_seconds = 200e-6;
constexpr std::int64_t deterministic_chunks = 8;

std::int64_t default_chunk_count(const Graph& graph, const Recipe& recipe,
                                 const PlanOptions& options) {
  const double step_seconds =
      step_flops(graph) * static_cast<double>(recipe.batch) / assumed_flops_per_second;
  const auto worthwhile = static_cast<std::int64_t>(step_seconds / least_chunk_seconds);
  const std::int64_t most = options.deterministic ? deterministic_chunks : options.workers;
  return std::clamp<std::int64_t>(worthwhile, 1, std::min(most, recipe.batch));
}

}  // namespace

double step_flops(const Graph& graph) {
  double total = 0;
  for (const Node& node : graph.nodes()) {
    const Cost cost = node.op->cost(node, input_shapes(graph, node));
    total += cost.forward_flops + cost.backward_flops;
  }
  return total;
}

std::vector<std::int64_t> equal_chunks(std::int64_t batch, std::int64_t count) {
  std::vector<std::int64_t> chunks;
  for (std::int64_t i = 0; i < count; ++i)
    chunks.push_back(batch * (i + 1) / count - batch * i / count);
  return chunks;
}

Plan make_plan(const Graph& graph, const Recipe& recipe, const PlanOptions& options) {
  DeviceGroup cpu;
  cpu.layout = options.layout;
  if (options.chunks && options.chunks->size() == 1) {
    const std::int64_t count = options.chunks->front();
    if (count < 1 || count > recipe.batch)
      throw InputError("--chunks " + std::to_string(count) + ": use 1 to " +
                       std::to_string(recipe.batch) + ", the batch, or a list of sizes");
    cpu.chunks = equal_chunks(recipe.batch, count);
  } else if (options.chunks) {
    cpu.chunks = *options.chunks;
  } else {
    cpu.chunks = equal_chunks(recipe.batch, default_chunk_count(graph, recipe, options));
  }
  const int count = static_cast<int>(cpu.chunks.size());
  const std::string segments = options.segments.value_or("step");

  // One chunk and one segment make a chain: a second worker would only disturb the first.
  const bool chain = count == 1 && segments == "step";
  cpu.workers = chain ? 1 : options.workers;
  if (options.deterministic)
    cpu.lanes = static_cast<int>(std::min<std::int64_t>(count, deterministic_chunks));
  else
    cpu.lanes = std::min(count, std::max(cpu.workers, 1));

  Plan plan;
  plan.recipe = recipe.fingerprint();
  plan.nodes = {{"here", {cpu}}};
  plan.segments = segments_named(graph, segments);
  plan.reduction = options.reduction;
  plan.scheduler = options.scheduler;
  plan.deterministic = options.deterministic;
  return plan;
}

}  // namespace regatta
