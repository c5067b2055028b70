#include "tasks/task_list.h"

#include <set>

namespace regatta {
namespace {

constexpr std::string_view phase_names[] = {"load",
                                            "forward",
                                            "combine",
                                            "deliver",
                                            "backward",
                                            "weight_gradient",
                                            "combine_gradient",
                                            "track",
                                            "reduce",
                                            "measure",
                                            "clip",
                                            "update",
                                            "pack",
                                            "exchange_sums",
                                            "exchange_gradient_sums",
                                            "exchange_group_sums",
                                            "running_sum",
                                            "exchange",
                                            "exchange_results"};
static_assert(std::size(phase_names) == static_cast<std::size_t>(Phase::exchange_results) + 1);

}  // namespace

std::string_view phase_name(Phase phase) { return phase_names[static_cast<std::size_t>(phase)]; }

const Part& part_of(const Program& program, const Action& action) {
  return (action.phase == Phase::forward    ? program.forward
          : action.phase == Phase::backward ? program.backward
                                            : program.weight_gradients)[action.part];
}

std::vector<std::string> faults(const TaskList& list) {
  std::vector<std::string> found;
  // Buffers that a step may read before it writes them: they carry over from step to step.
  const auto carried = [&](BufferKind kind) {
    return kind == BufferKind::parameters || kind == BufferKind::moment ||
           kind == BufferKind::average || kind == BufferKind::state || kind == BufferKind::packed ||
           kind == BufferKind::statistics || kind == BufferKind::partials ||
           kind == BufferKind::gathered_sums || (kind == BufferKind::gradient && adds(list.job));
  };
  std::set<std::uint32_t> written;
  for (std::size_t t = 0; t < list.tasks.size(); ++t) {
    const Task& task = list.tasks[t];
    const std::string who = "task " + std::to_string(t);
    if (task.actions.empty()) found.push_back(who + " does nothing");
    std::set<std::uint32_t> seen;
    for (const Access& access : task.accesses) {
      const Buffer& buffer = list.buffers.at(access.buffer);
      const std::string what = who + ", buffer " + std::to_string(access.buffer);
      if (!seen.insert(access.buffer).second) found.push_back(what + ": accessed twice");
      if (buffer.bytes == 0) found.push_back(what + ": empty");
      const bool reads = access.mode == Mode::read || access.mode == Mode::read_write;
      if (reads && !carried(buffer.kind) && !written.contains(access.buffer))
        found.push_back(what + ": read before it is written");
      if (access.mode != Mode::read) written.insert(access.buffer);
    }
  }
  return found;
}

}  // namespace regatta
