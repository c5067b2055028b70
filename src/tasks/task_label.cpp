#include "tasks/task_label.h"

namespace regatta {

TaskLabel label_of(const Task& task) {
  TaskLabel label;
  for (const Action& action : task.actions) {
    const std::string phase(phase_name(action.phase));
    // Many buckets in one task are one piece of work to a reader.
    if (!label.phases.ends_with(phase)) label.phases += (label.phases.empty() ? "" : "+") + phase;
    const auto number = [](std::uint32_t value) { return static_cast<std::int32_t>(value); };
    switch (action.phase) {
      case Phase::load:
      case Phase::deliver:
        label.chunk = number(action.chunk.value);
        break;
      case Phase::forward:
      case Phase::backward:
      case Phase::weight_gradient:
        label.chunk = number(action.chunk.value);
        label.segment = number(action.segment.value);
        label.part = number(action.part);
        break;
      case Phase::exchange_results:
        break;
      case Phase::combine:
      case Phase::combine_gradient:
      case Phase::exchange_sums:
      case Phase::exchange_gradient_sums:
      case Phase::exchange_group_sums:
      case Phase::track:
        label.segment = number(action.segment.value);
        label.part = number(action.part);
        break;
      default:
        if (label.segment < 0) label.segment = number(action.segment.value);
        label.bucket = number(action.bucket.value);
        break;
    }
  }
  return label;
}

}  // namespace regatta
