#include "train/rank_part.h"

#include "platform/machine.h"

namespace regatta {

PlanOptions options_of(const Plan& plan, const RankRequest& request) {
  PlanOptions options;
  const DeviceGroup& group = plan.nodes.front().groups.front();
  options.team = group.team;
  options.layout = group.layout;
  options.gpu_layout = group.layout;
  options.reduction = plan.reduction;
  options.backward = plan.backward;
  options.scheduler = plan.scheduler;
  options.perf_model = plan.perf_model;
  options.deterministic = plan.deterministic;
  options.devices = {group.kind};
  options.workers = request.workers;
  if (!plan.deterministic) {
    options.chunks = request.chunks;
    return options;
  }
  // The chunks of the plan, whichever rank computes them.
  std::vector<std::int64_t> chunks;
  for (const Chunk& chunk : chunks_of(plan)) chunks.push_back(chunk.capacity);
  options.chunks = chunks.size() == 1 ? std::vector<std::int64_t>{1} : chunks;
  return options;
}

void keep_the_rest(Plan& plan, const Plan& before) {
  plan.segments = before.segments;
  plan.gather_phases = before.gather_phases;
  plan.gather_loads = before.gather_loads;
  plan.bucket_bytes = before.bucket_bytes;
  plan.steps_in_flight = before.steps_in_flight;
  plan.loaders = before.loaders;
  plan.placement = before.placement;
}

void keep_slow(Plan& plan, std::vector<double> slow) {
  DeviceGroup& group = plan.nodes.front().groups.front();
  if (slow.empty()) return;
  slow.resize(static_cast<std::size_t>(group.workers), 1);
  group.slow = std::move(slow);
}

void take_part(Ranks& ranks, TrainJob& job, Plan whole, std::vector<int> sites) {
  const auto number = static_cast<std::size_t>(ranks.rank());
  job.plan_of_all = std::move(whole);
  job.plan = plan_of_node(*job.plan_of_all, number);
  job.plan.cpus = available_cpus();
  job.ranks = {rank_place(*job.plan_of_all, number, std::move(sites)), ranks.transport(),
               ranks.names()};
}

}  // namespace regatta
