#include "app/simulate_here.h"

#include "app/profiles.h"
#include "base/error.h"
#include "platform/energy.h"
#include "platform/machine.h"
#include "platform/probe.h"
#include "report/compare.h"
#include "tune/stored_profile.h"

namespace regatta::app {
namespace {

// The bus of a GPU that no probe has described: PCIe 3 with 16 lanes, as a copy sustains it.
constexpr double assumed_bus_bandwidth = 12e9, assumed_bus_latency = 1e-5;

// With the CPUs and GPUs that the plan uses. Where joules are not measured, a run counts them alike
// whether a device works or waits; so does this.
Platform machine_of(const Plan& plan) {
  Platform platform = this_machine(here);
  PlatformGroup& cores = platform.nodes.front().groups.front();
  cores.count = cpus_of(plan);
  cores.watts = {assumed_watts_per_cpu, assumed_watts_per_cpu};
  for (const DeviceGroup* group : groups_of(plan)) {
    if (group->kind != DeviceKind::cuda) continue;
    PlatformGroup gpu;
    gpu.name = group->name;
    gpu.kind = DeviceKind::cuda;
    gpu.watts = {assumed_watts_per_gpu, assumed_watts_per_gpu};
    gpu.costs.profile = here;
    gpu.bus = Bus{assumed_bus_bandwidth, assumed_bus_bandwidth, assumed_bus_latency, ""};
    platform.nodes.front().groups.push_back(std::move(gpu));
  }
  return platform;
}

}  // namespace

sim::Simulated simulate_here(const TrainJob& job, std::int64_t steps, std::uint64_t seed) {
  if (job.recipe.accumulate > 1)
    throw InputError("steps of several batches (--accumulate) cannot be simulated yet");
  const std::shared_ptr<const Profile> profile = job.profile ? job.profile : stored_profile();
  Plan plan = job.plan;
  // What workers draw beyond idle is in the assumed watts already. A pace compares watts, so they
  // keep their ratios.
  for (PlanNode& node : plan.nodes)
    for (DeviceGroup& group : node.groups)
      for (WorkerPower& power : group.powers) power.watts *= 1e-12;
  sim::PreparedFleet fleet(job.graph, job.recipe, machine_of(plan), {{here, profile}});
  fleet.follow(plan);
  sim::Simulated made =
      sim::simulate(fleet.fleet(),
                    {.steps = steps, .seed = seed, .crowded = fleet.threads() >= available_cpus()});
  std::size_t bytes = 0;
  for (const auto& memory : fleet.memory(0)) bytes += memory.bytes;
  made.record.metadata[peak_bytes_key] = std::to_string(bytes);
  return made;
}

}  // namespace regatta::app
