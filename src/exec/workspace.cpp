#include "exec/workspace.h"

#include <algorithm>
#include <set>

namespace regatta {

std::unique_ptr<cpu::Backend> make_cpu_backend(const Blueprint& blueprint,
                                               const Normalisation& normalisation) {
  Layout layout = cpu::preferred_layout();
  // In a plan without a CPU group, CPU workers only load and update: the precision of values does
  // not concern them.
  Precision precision = Precision::fp32;
  for (const DeviceGroup* group : groups_of(blueprint.plan)) {
    if (group->kind != DeviceKind::cpu) continue;
    layout = group->layout;
    precision = blueprint.precision;
  }
  // Kernels choose formats by the largest chunk of any rank, so that all ranks have the same.
  std::int64_t largest = std::ranges::max(blueprint.chunks, {}, &Chunk::capacity).capacity;
  for (const std::int64_t capacity : blueprint.ranks.chunks) largest = std::max(largest, capacity);
  return std::make_unique<cpu::Backend>(blueprint.graph, layout, largest, blueprint.sample_dtype,
                                        normalisation, precision);
}

std::size_t workspace_bytes(const Blueprint& blueprint, const Normalisation& normalisation,
                            Pass pass) {
  const std::unique_ptr<cpu::Backend> backend = make_cpu_backend(blueprint, normalisation);
  std::size_t all = 0;
  for (const DeviceGroup* group : groups_of(blueprint.plan)) {
    if (group->kind != DeviceKind::cpu) continue;
    const cpu::AsWorker described(group->team);
    cpu::Worker worker(*backend);
    std::size_t most = 0;
    for (const std::int64_t samples : std::set(group->chunks.begin(), group->chunks.end()))
      for (const SegmentPlace& place : blueprint.segments) {
        const Program& program = pass == Pass::train ? place.train : place.evaluate;
        for (const auto* parts : {&program.forward, &program.backward, &program.weight_gradients})
          for (const Part& part : *parts)
            for (const Instruction& step : part)
              most = std::max(most, worker.scratch_bytes(step, samples));
      }
    all += most * static_cast<std::size_t>(group->workers);
  }
  return all;
}

}  // namespace regatta
