#include "exec/prepared_list.h"

#include <algorithm>

#include "base/error.h"
#include "tasks/costs.h"
#include "tasks/dependencies.h"

namespace regatta {
namespace {

// Once for all steps, since schedulers ask while tasks fly. Microseconds by task.
std::vector<double> predict(const Blueprint& blueprint, const TaskList& list,
                            const ExecOptions& options) {
  const ProfileCosts costs(blueprint, options.profile, options.data,
                           list.job == ListKind::evaluate ? Pass::evaluate : Pass::train);
  std::vector<double> predicted;
  for (const Task& task : list.tasks) {
    if (options.null_kernels) {
      predicted.push_back(1e6 * options.null_kernels(task).count());
      continue;
    }
    const DeviceGroup& group = blueprint.group(task.group);
    const int busy = std::min(group.workers, static_cast<int>(group.chunks.size()));
    predicted.push_back(1e6 * costs.of(task, busy).seconds);
  }
  return predicted;
}

std::vector<double> in_seconds(std::vector<double> microseconds) {
  for (double& each : microseconds) each *= 1e-6;
  return microseconds;
}

}  // namespace

PreparedList prepare(const Blueprint& blueprint, ListKind job, const ExecOptions& options) {
  if (trains(job) && !options.training) throw Error("internal: made to evaluate, not to train");
  PreparedList made;
  made.list = lower(blueprint, job);
  if (const auto broken = faults(made.list); !broken.empty())
    throw Error("internal: the task list is broken: " + broken.front());
  require_order(blueprint, made.list);
  made.predicted = predict(blueprint, made.list, options);
  made.ranks = ranks(made.predicted, Dependencies().follow(made.list, 0, 0));
  made.places =
      StepPlaces(fixed_places(blueprint, made.list), workers_of(blueprint.plan).size(),
                 job == ListKind::train
                     ? pace_of(blueprint.plan, in_seconds(made.predicted), in_seconds(made.ranks))
                     : nullptr);
  std::size_t handles = 0;
  for (const Task& task : made.list.tasks) {
    made.first_handle.push_back(handles);
    handles += task.accesses.size();
  }
  made.handles.resize(static_cast<std::size_t>(blueprint.plan.steps_in_flight));
  made.data.resize(made.handles.size());
  return made;
}

void PreparedList::look_up(Buffers& buffers, std::size_t step) {
  if (!handles[step % handles.size()].empty()) return;
  Handles found;  // kept once all buffers are allocated
  Data addresses;
  for (const Task& task : list.tasks)
    for (const Access& access : task.accesses) {
      const Buffer& what = list.buffers[access.buffer];
      const PlanBuffer& buffer = buffers.get(what.kind, what.first, what.second, what.bytes,
                                             step % static_cast<std::size_t>(what.copies));
      found.push_back(buffer.handle());
      addresses.push_back(buffer.data());
    }
  handles[step % handles.size()] = std::move(found);
  data[step % data.size()] = std::move(addresses);
}

}  // namespace regatta
