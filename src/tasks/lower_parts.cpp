#include "tasks/lower_parts.h"

#include "graph/op.h"
#include "tasks/lower_meetings.h"

namespace regatta {

void PartLowering::forward(SegmentId s, std::uint32_t part, const Chunk& chunk, bool join) {
  const Part& steps = list_.program_of(s).forward[part];
  Task& task = list_.task_for(chunk.group, join);
  task.actions.push_back({.phase = Phase::forward, .segment = s, .part = part, .chunk = chunk.id});
  list_.touch_arena(task, s, chunk, part == 0);
  const std::vector<bool> border_here = list_.borders(s).values;
  for (const Instruction& step : steps) compute(task, s, step, chunk, border_here);
}

void PartLowering::compute(Task& task, SegmentId s, const Instruction& step, const Chunk& chunk,
                           const std::vector<bool>& border_here) {
  const Node& node = graph_.node(step.node);
  if (node.id == graph_.input() || node.id == graph_.loss())
    list_.touch(task, list_.samples(chunk), Mode::read);
  for (const NodeId input : node.inputs)
    if (list_.outside(s, input) || border_here[input.value])
      list_.touch(task, list_.border(chunk, input), Mode::read);
  if (step.work != Work::statistics && border_here[node.id.value])
    list_.touch(task, list_.border(chunk, node.id), Mode::write);
  touch_parameters(task, node, chunk.group);
  touch_meeting(list_, task, s, step, chunk);
  task.flops += list_.flops(step, chunk);
}

void PartLowering::backward(SegmentId s, std::uint32_t part, const Chunk& chunk, bool join) {
  const Program& program = list_.program_of(s);
  const Part& steps = program.backward[part];
  if (steps.empty() && !program.weight_gradients.empty()) return;
  Task& task = list_.task_for(chunk.group, join);
  task.actions.push_back({.phase = Phase::backward, .segment = s, .part = part, .chunk = chunk.id});
  list_.touch_arena(task, s, chunk, part == 0 && list_.recomputed(s));
  const Borders here = list_.borders(s);
  for (const Instruction& step : steps) {
    if (!goes_back(step.work)) {
      compute(task, s, step, chunk, here.values);
      continue;
    }
    const Node& node = graph_.node(step.node);
    if (node.id == graph_.loss()) list_.touch(task, list_.samples(chunk), Mode::read);
    read_for_backward(task, s, step, chunk, here);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const NodeId input = node.inputs[i];
      if (!list_.outside(s, input) && !here.gradients[input.value]) continue;
      const GradientMode mode = blueprint_.flow.mode(node.id, i);
      if (mode != GradientMode::none && gives_input_gradients(step.work))
        list_.touch(task, list_.border_gradient(chunk, input),
                    mode == GradientMode::add ? Mode::read_write : Mode::write);
    }
    touch_parameters(task, node, chunk.group);
    touch_gradients(task, step, chunk);
    touch_meeting(list_, task, s, step, chunk);
    task.flops += list_.flops(step, chunk);
  }
}

void PartLowering::read_for_backward(Task& task, SegmentId s, const Instruction& step,
                                     const Chunk& chunk, const Borders& here) {
  const Node& node = graph_.node(step.node);
  if (node.id != graph_.loss()) {
    if (here.gradients[node.id.value])
      list_.touch(task, list_.border_gradient(chunk, node.id), Mode::read);
    if (here.values[node.id.value] && node.op->backward_reads_output)
      list_.touch(task, list_.border(chunk, node.id), Mode::read);
  }
  // In a split backward, input gradients are computed from weights and output gradients alone.
  if (!node.op->backward_reads_input || step.work == Work::input_gradient) return;
  for (const NodeId input : node.inputs)
    if (list_.outside(s, input) || here.values[input.value])
      list_.touch(task, list_.border(chunk, input), Mode::read);
}

void PartLowering::weight_gradients(SegmentId s, std::uint32_t part) {
  const Program& program = list_.program_of(s);
  if (program.weight_gradients.empty() || program.weight_gradients[part].empty()) return;
  const Borders here = list_.borders(s);
  for (const Chunk& chunk : blueprint_.chunks) {
    Task& task = list_.task_for(chunk.group, false);
    task.actions.push_back(
        {.phase = Phase::weight_gradient, .segment = s, .part = part, .chunk = chunk.id});
    // For StarPU's own schedulers, which know no upward ranks: lets the rest of backward go first.
    if (task.actions.size() == 1) task.priority = -1;
    for (const Instruction& step : program.weight_gradients[part]) {
      read_for_backward(task, s, step, chunk, here);
      touch_gradients(task, step, chunk);
      task.flops += list_.flops(step, chunk);
    }
  }
}

void PartLowering::touch_gradients(Task& task, const Instruction& step, const Chunk& chunk) {
  if (!gives_parameter_gradients(step.work)) return;
  for (const ParameterId parameter : graph_.node(step.node).parameters)
    touch_gradient(task, parameter, chunk);
}

void PartLowering::touch_gradient(Task& task, ParameterId parameter, const Chunk& chunk) {
  const BucketId b = blueprint_.bucket_of[parameter.value];
  if (blueprint_.by_redux()) {
    list_.touch(task, list_.gradient(b, 0), Mode::reduce);
    return;
  }
  const std::uint32_t slot = list_.gradient(b, chunk.slot);
  const bool begins = written_.insert(slot).second && !adds(list_.kind());
  const auto elements = static_cast<std::size_t>(graph_.parameter(parameter).shape.elements());
  list_.touch(task, slot, begins ? Mode::write : Mode::read_write,
              {blueprint_.parameter_offset[parameter.value], elements * sizeof(float)});
}

void PartLowering::touch_parameters(Task& task, const Node& node, GroupId group) {
  for (const ParameterId parameter : node.parameters) {
    const BucketId b = blueprint_.bucket_of[parameter.value];
    list_.touch(task, list_.parameters(b), Mode::read);
    list_.touch_packed(task, b, group, Mode::read);
  }
}

}  // namespace regatta
