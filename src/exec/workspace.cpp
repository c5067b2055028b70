#include "exec/workspace.h"

#include <algorithm>
#include <set>

namespace regatta {

std::unique_ptr<cpu::Backend> make_cpu_backend(const Blueprint& blueprint,
                                               const ExecOptions& options) {
  Layout layout = cpu::preferred_layout();
  // In a plan without a CPU group, CPU workers only load and update: the precision of values does
  // not concern them.
  Precision precision = Precision::fp32;
  for (const DeviceGroup* group : groups_of(blueprint.plan)) {
    if (group->kind != DeviceKind::cpu) continue;
    layout = group->layout;
    precision = options.numbers.precision;
  }
  // Kernels choose formats by the largest chunk of any rank, so that all ranks have the same.
  std::int64_t largest = std::ranges::max(blueprint.chunks, {}, &Chunk::capacity).capacity;
  for (const std::int64_t capacity : blueprint.ranks.chunks) largest = std::max(largest, capacity);
  return std::make_unique<cpu::Backend>(blueprint.graph, layout, largest, options.numbers.samples,
                                        options.normalisation, precision);
}

std::size_t workspace_bytes(const Graph& graph, const Plan& plan, const ExecOptions& options) {
  const Blueprint blueprint = make_blueprint(graph, plan, options.numbers, true);
  const std::unique_ptr<cpu::Backend> backend = make_cpu_backend(blueprint, options);
  cpu::Worker worker(*backend);
  std::size_t all = 0;
  for (std::uint32_t g = 0; g < groups_of(plan).size(); ++g) {
    const DeviceGroup& group = blueprint.group(GroupId{g});
    if (group.kind != DeviceKind::cpu) continue;
    std::size_t most = 0;
    for (const std::int64_t samples : std::set(group.chunks.begin(), group.chunks.end()))
      for (const SegmentPlace& place : blueprint.segments)
        for (const auto* parts :
             {&place.train.forward, &place.train.backward, &place.train.weight_gradients})
          for (const Part& part : *parts)
            for (const Instruction& step : part)
              most = std::max(most, worker.scratch_bytes(step, samples));
    all += most * static_cast<std::size_t>(group.workers);
  }
  return all;
}

}  // namespace regatta
