#include "report/overlay.h"

#include <algorithm>
#include <cmath>

namespace regatta {

void overlay(trace::Record& record, trace::Analysis& analysis, const trace::Record& simulated) {
  const trace::Analysis told = trace::analyse(simulated, trace::whole_window(simulated));
  const auto workers = static_cast<std::int32_t>(record.workers.size());
  const auto kinds = static_cast<std::int32_t>(record.kinds.size());
  const trace::Time shift = analysis.window.start - told.window.start;
  const std::int64_t step_shift = analysis.window.first_step - told.window.first_step;
  std::int64_t id = record.tasks.empty() ? 0 : record.tasks.back().id + 1;
  const bool one_node = std::ranges::all_of(simulated.workers, [&](const trace::Worker& each) {
    return each.node == simulated.workers.front().node;
  });
  for (trace::Worker worker : simulated.workers) {
    worker.name += " simulated";
    // The same machine, by whatever name the simulation knows it.
    if (workers > 0 && one_node) worker.node = record.workers.front().node;
    worker.kind = simulated_kind;
    record.workers.push_back(std::move(worker));
  }
  record.kinds.insert(record.kinds.end(), simulated.kinds.begin(), simulated.kinds.end());
  for (trace::Task task : simulated.tasks) {
    if (task.worker < 0 || task.start < told.window.start) continue;
    task.id = id++;
    task.worker += workers;
    task.kind += kinds;
    task.step += task.step > 0 ? step_shift : 0;
    for (trace::Time* time : {&task.submit, &task.ready, &task.start, &task.end})
      if (*time != trace::unknown) *time = std::max<trace::Time>(0, *time + shift);
    record.tasks.push_back(task);
  }
  // As shares of a window as long as the measured one, whose shares they are shown beside.
  const double stretch =
      told.wall() > 0 ? trace::seconds(analysis.wall()) / trace::seconds(told.wall()) : 1;
  const auto stretched = [&](trace::Time time) {
    return static_cast<trace::Time>(std::llround(static_cast<double>(time) * stretch));
  };
  for (trace::WorkerUse use : told.workers) {
    for (trace::Time* time : {&use.busy, &use.idle, &use.overhead}) *time = stretched(*time);
    for (trace::Time& time : use.causes) time = stretched(time);
    analysis.workers.push_back(use);
  }
}

}  // namespace regatta
