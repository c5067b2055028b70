#include "tasks/lower_meetings.h"

#include "graph/op.h"
#include "tasks/lower_exchanges.h"

namespace regatta {

void touch_meeting(ListBuilder& list, Task& task, SegmentId s, const Instruction& step,
                   const Chunk& chunk) {
  const Blueprint& blueprint = list.blueprint();
  const Node& node = blueprint.graph.node(step.node);
  if (!node.op->meets) return;
  const SegmentPlace& place = blueprint.segments[s.value];
  const bool grouped = statistics_group(node) > 0;
  const auto statistics = [&](Mode mode) {
    list.touch(task,
               list.segment_buffer(BufferKind::statistics, s, place.statistics_bytes,
                                   grouped ? chunk.id.value : 0),
               mode, list.statistics_of(node.id));
  };
  const auto partials = [&](Mode mode) {
    list.touch(task,
               list.segment_buffer(BufferKind::partials, s, place.partials_bytes, chunk.id.value),
               mode, list.partials_of(node.id));
  };
  const auto state = [&](Mode mode) {
    list.touch(task, list.segment_buffer(BufferKind::state, s, place.state_bytes), mode,
               state_range(blueprint, node.id));
  };
  switch (step.work) {
    case Work::forward:
      if (list.pass() == Pass::train) statistics(Mode::read_write);
      if (list.pass() == Pass::train && grouped)
        partials(Mode::read_write);
      else
        state(list.pass() == Pass::train ? Mode::read_write : Mode::read);
      break;
    case Work::backward:
      statistics(Mode::read_write);
      break;
    case Work::input_gradient:
    case Work::weight_gradient:  // of operators that do not meet
      break;
    case Work::statistics:
    case Work::gradient_sums:
      if (step.work == Work::gradient_sums) statistics(Mode::read);
      partials(Mode::read_write);
      break;
    case Work::normalise:
    case Work::gradient_apply:
      statistics(Mode::read);
      break;
  }
}

void meet(ListBuilder& list, SegmentId s, std::uint32_t part, Phase phase) {
  const Blueprint& blueprint = list.blueprint();
  const SegmentPlace& place = blueprint.segments[s.value];
  const bool back = phase == Phase::combine_gradient;
  const NodeId node = meeting_after(list.program_of(s), part, back);
  if (list.several()) exchange_sums(list, s, part, back);
  Task& task = list.task_for(blueprint.owner, false);
  task.actions.push_back({.phase = phase, .segment = s, .part = part});
  task.priority = 1;
  if (list.several())
    list.touch(task, list.gathered_sums(s), Mode::read);
  else
    list.read_partials(task, s, list.partials_of(node));
  list.touch(task, list.segment_buffer(BufferKind::statistics, s, place.statistics_bytes),
             Mode::read_write, list.statistics_of(node));
  if (!back)
    list.touch(task, list.segment_buffer(BufferKind::state, s, place.state_bytes), Mode::read_write,
               state_range(blueprint, node));
}

void track(ListBuilder& list, SegmentId s) {
  if (list.several()) exchange_group_sums(list, s);
  Task& task = list.task_for(list.blueprint().owner, false);
  task.actions.push_back({.phase = Phase::track, .segment = s});
  if (list.several())
    list.touch(task, list.gathered_sums(s), Mode::read);
  else
    list.read_partials(task, s);
  const std::size_t bytes = list.blueprint().segments[s.value].state_bytes;
  list.touch(task, list.segment_buffer(BufferKind::state, s, bytes), Mode::read_write);
}

}  // namespace regatta
