// Shares are owned by groups: no cost can make a scheduler leave a planned device unused.
#include <gtest/gtest.h>

#include <set>

#include "models/models.h"
#include "plan/segments.h"
#include "sim/fleet_plan.h"

namespace regatta::sim {
namespace {

Platform core_and_gpu(double gpu_flops) {
  Platform platform;
  platform.name = "one of each";
  PlatformNode node;
  node.name = "n";
  node.groups = {{.name = "cpu", .count = 2, .memory = 1 << 30, .costs = {.flops = 1e12}},
                 {.name = "gpu",
                  .kind = DeviceKind::cuda,
                  .memory = 1 << 30,
                  .costs = {.flops = gpu_flops},
                  .bus = Bus{1e10, 1e10, 1e-6, ""}}};
  platform.nodes = {node};
  return platform;
}

// The GPU is planted a million times as slow as the cores. It computes its chunk all the same, the
// cores none of it, and the step takes as long as that does.
TEST(Ownership, ADeviceThatCostsHateStillDoesItsShare) {
  const Graph graph = fuse(build_model("lenet5"));
  Recipe recipe;
  recipe.batch = 16;
  for (const char* segments : {"step", "op"}) {
    Plan plan;
    plan.segments = segments_named(graph, segments);
    DeviceGroup cpu, gpu;
    cpu.workers = 2;
    cpu.chunks = {4, 4};
    cpu.lanes = 2;
    gpu.name = "gpu";
    gpu.kind = DeviceKind::cuda;
    gpu.layout = Layout::nhwc;
    gpu.chunks = {8};
    plan.nodes = {{"n", {cpu, gpu}}};
    require_valid(plan, graph, recipe.batch);
    const auto simulated = [&](double flops) {
      PreparedFleet fleet(graph, recipe, core_and_gpu(flops), {});
      fleet.follow(plan);
      return simulate(fleet.fleet(), {.steps = 3});
    };
    const Simulated fair = simulated(1e12), hated = simulated(1e6);
    std::set<std::string> where;  // groups whose workers computed the GPU's chunk
    std::int64_t computed = 0;
    for (const trace::Task& task : hated.record.tasks) {
      const trace::TaskKind& kind = hated.record.kind_of(task);
      const bool computes =
          kind.phases.starts_with("forward") || kind.phases.starts_with("backward");
      if (!computes || kind.chunk != 2) continue;
      ++computed;
      where.insert(hated.record.workers[static_cast<std::size_t>(task.worker)].group);
    }
    EXPECT_GE(computed, 3) << segments;
    EXPECT_EQ(where, std::set<std::string>{"gpu"}) << segments;
    EXPECT_GT(hated.step_s[0], 100 * fair.step_s[0]) << segments;
    EXPECT_GT(hated.groups[1].busy_s, 0.9 * hated.step_s[0]) << segments;
  }
}

}  // namespace
}  // namespace regatta::sim
