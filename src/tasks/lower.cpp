#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/target.h"
#include "graph/op.h"
#include "tasks/task_list.h"

namespace regatta {
namespace {

// How far actions run together in one task when the whole step is one segment and one chunk: on a
// CPU all of them; on a GPU all but those of the host, so that a step is one graph.
enum class Together { parts, device, all };

// Builds one task list. Actions are emitted in an order that sequential execution may follow.
class Lowering {
 public:
  Lowering(const Blueprint& blueprint, ListKind job)
      : blueprint_(blueprint),
        graph_(blueprint.graph),
        pass_(job == ListKind::evaluate ? Pass::evaluate : Pass::train) {
    list_.job = job;
  }

  TaskList run() {
    const bool whole = blueprint_.plan.gather_phases && blueprint_.segments.size() == 1 &&
                       !blueprint_.cut() && list_.job != ListKind::prepare;
    if (whole) together_ = on_cpu(GroupId{0}) ? Together::all : Together::device;
    switch (list_.job) {
      case ListKind::prepare:
        for (std::uint32_t b = 0; b < blueprint_.buckets.size(); ++b) pack(BucketId{b}, false);
        break;
      case ListKind::train:
      case ListKind::first:
      case ListKind::middle:
      case ListKind::last:
        loads();
        forward_segments();
        backward_segments();
        if (takes_step(list_.job) && clips()) clipped_updates();
        late_deliveries();
        exchange_results();
        break;
      case ListKind::evaluate:
        loads();
        forward_segments();
        late_deliveries();
        exchange_results();
        break;
    }
    return std::move(list_);
  }

 private:
  // --- tasks

  // A task on a device of `group`; `join`: the one before it.
  Task& task_for(GroupId group, bool join) {
    const bool first = list_.tasks.empty() || list_.tasks.back().on_host;
    const bool joins = together_ == Together::all
                           ? !list_.tasks.empty()
                           : join || (together_ == Together::device && !first);
    if (!joins) {
      list_.tasks.emplace_back();
      list_.tasks.back().group = group;
    }
    return list_.tasks.back();
  }

  // Loading and delivering; a CPU's task may take them along.
  Task& host_task(GroupId group, bool join) {
    const bool joins = (join || together_ == Together::all) && !list_.tasks.empty();
    if (!joins) {
      list_.tasks.emplace_back();
      list_.tasks.back().group = group;
      list_.tasks.back().on_host = true;
    }
    return list_.tasks.back();
  }

  // By messages between ranks.
  Task& travelling_task(Action action) {
    Task& task = list_.tasks.emplace_back();
    task.group = blueprint_.owner;
    task.on_host = true;
    task.priority = 1;
    task.actions.push_back(action);
    return task;
  }

  std::uint32_t buffer(BufferKind kind, std::uint32_t first, std::uint32_t second,
                       std::size_t bytes, int copies = 1) {
    const auto [found, fresh] = numbers_.try_emplace(
        std::tuple(kind, first, second), static_cast<std::uint32_t>(list_.buffers.size()));
    if (fresh) list_.buffers.push_back({kind, first, second, bytes, copies});
    return found->second;
  }

  // A second access to the same buffer widens the first. A buffer that this task wrote first keeps
  // mode write: its old content is not wanted.
  void touch(Task& task, std::uint32_t number, Mode mode) const {
    touch(task, number, mode, {0, list_.buffers[number].bytes});
  }
  static void touch(Task& task, std::uint32_t number, Mode mode, ByteRange range) {
    for (Access& access : task.accesses) {
      if (access.buffer != number) continue;
      if (access.mode == Mode::read && mode != Mode::read) access.mode = Mode::read_write;
      const std::size_t end = std::max(access.from + access.bytes, range.from + range.bytes);
      access.from = std::min(access.from, range.from);
      access.bytes = end - access.from;
      return;
    }
    task.accesses.push_back({number, mode, range.from, range.bytes});
  }

  // --- buffers by name

  std::uint32_t samples(const Chunk& chunk) {
    const std::size_t bytes =
        blueprint_.targets_offset + static_cast<std::size_t>(chunk.capacity) * sizeof(Target);
    return buffer(BufferKind::samples, chunk.id.value, 0, bytes, blueprint_.plan.steps_in_flight);
  }
  std::uint32_t border(const Chunk& chunk, NodeId node) {
    // What the host reads after the step has an own copy per step in flight.
    const bool delivered = node == graph_.loss() || node == graph_.logits();
    return buffer(BufferKind::border, chunk.id.value, node.value, value_bytes(chunk, node),
                  delivered ? blueprint_.plan.steps_in_flight : 1);
  }
  std::uint32_t border_gradient(const Chunk& chunk, NodeId node) {
    return buffer(BufferKind::border_gradient, chunk.id.value, node.value,
                  value_bytes(chunk, node));
  }
  std::size_t value_bytes(const Chunk& chunk, NodeId node) const {
    return blueprint_.forms[chunk.group.value][node.value].bytes(chunk.capacity);
  }
  std::uint32_t parameters(BucketId b) {
    return buffer(BufferKind::parameters, b.value, 0, blueprint_.buckets[b.value].bytes);
  }
  std::uint32_t gradient(BucketId b, int slot) {
    return buffer(BufferKind::gradient, b.value, static_cast<std::uint32_t>(slot),
                  blueprint_.buckets[b.value].bytes);
  }
  std::uint32_t gathered_sums(SegmentId s) {
    return segment_buffer(
        BufferKind::gathered_sums, s,
        blueprint_.segments[s.value].partials_bytes * blueprint_.ranks.chunks.size());
  }
  std::uint32_t delivered(const Chunk& chunk) {
    return buffer(BufferKind::delivered, chunk.id.value, 0, sizeof(std::int64_t),
                  blueprint_.plan.steps_in_flight);
  }
  std::uint32_t segment_buffer(BufferKind kind, SegmentId s, std::size_t bytes,
                               std::uint32_t second = 0) {
    return buffer(kind, s.value, second, bytes);
  }

  void touch_packed(Task& task, BucketId b, GroupId group, Mode mode) {
    const std::size_t bytes = blueprint_.buckets[b.value].packed_bytes[group.value];
    if (bytes > 0) touch(task, buffer(BufferKind::packed, b.value, group.value, bytes), mode);
  }
  void touch_arena(Task& task, SegmentId s, const Chunk& chunk, bool begins) {
    const SegmentPlace& place = blueprint_.segments[s.value];
    std::size_t bytes = place.evaluate_arena[chunk.group.value].bytes;
    if (!place.train_arena.empty())
      bytes = std::max(bytes, place.train_arena[chunk.group.value].bytes);
    if (bytes == 0) return;
    const ChunkId holder = blueprint_.arena_of(chunk, pass_);
    touch(task, segment_buffer(BufferKind::arena, s, bytes, holder.value),
          begins ? Mode::write : Mode::read_write);
  }

  // --- phases

  void loads() {
    for (const Chunk& chunk : blueprint_.chunks) {
      if (load_with_forward(chunk)) continue;
      const std::uint32_t pieces = load_pieces(blueprint_, chunk);
      for (std::uint32_t piece = 0; piece < pieces; ++piece)
        load(chunk, host_task(chunk.group, false), piece,
             pieces > 1 ? Mode::write_part : Mode::write);
    }
  }

  void load(const Chunk& chunk, Task& task, std::uint32_t piece = 0, Mode mode = Mode::write) {
    task.actions.push_back({.phase = Phase::load, .part = piece, .chunk = chunk.id});
    // Loading ahead must not hold up the step that is computing.
    if (task.on_host && task.actions.size() == 1) task.priority = -1;
    touch(task, samples(chunk), mode);
  }

  void forward_segments() {
    for (std::uint32_t s = 0; s < blueprint_.segments.size(); ++s) {
      const SegmentId segment{s};
      const Program& program = program_of_segment(segment);
      for (std::uint32_t part = 0; part < program.forward.size(); ++part) {
        for (const Chunk& chunk : blueprint_.chunks) {
          const bool last =
              s + 1 == blueprint_.segments.size() && part + 1 == program.forward.size();
          const bool loads = load_with_forward(chunk) && s == 0 && part == 0;
          if (loads) load(chunk, task_for(chunk.group, false));
          forward(segment, part, chunk, loads);
          if (!last) continue;
          // Delivering happens on the host: a CPU task takes it along, a GPU task cannot.
          const bool gather = blueprint_.plan.gather_phases;
          if (on_cpu(chunk.group)) deliver(chunk, gather);
          if (pass_ == Pass::train && gather) backward(segment, 0, chunk, true);
        }
        if (part + 1 < program.forward.size()) meet(segment, part, Phase::combine);
      }
      if (!program.grouped.empty()) track(segment);
    }
  }

  void backward_segments() {
    for (std::uint32_t s = static_cast<std::uint32_t>(blueprint_.segments.size()); s-- > 0;) {
      const SegmentId segment{s};
      const Program& program = program_of_segment(segment);
      const bool final_segment = s + 1 == blueprint_.segments.size();
      for (std::uint32_t part = 0; part < program.backward.size(); ++part) {
        const bool done_already = final_segment && part == 0 && blueprint_.plan.gather_phases;
        if (!done_already)
          for (const Chunk& chunk : blueprint_.chunks) backward(segment, part, chunk, false);
        weight_gradients(segment, part);
        if (part + 1 < program.backward.size()) meet(segment, part, Phase::combine_gradient);
      }
      if (!takes_step(list_.job)) continue;
      for (std::uint32_t b = 0; b < blueprint_.buckets.size(); ++b)
        if (blueprint_.buckets[b].segment == segment) settle(BucketId{b});
    }
  }

  void forward(SegmentId s, std::uint32_t part, const Chunk& chunk, bool join) {
    const Part& steps = program_of_segment(s).forward[part];
    Task& task = task_for(chunk.group, join);
    task.actions.push_back(
        {.phase = Phase::forward, .segment = s, .part = part, .chunk = chunk.id});
    touch_arena(task, s, chunk, part == 0);
    const std::vector<bool> border_here = borders(s).values;
    for (const Instruction& step : steps) {
      const Node& node = graph_.node(step.node);
      if (node.id == graph_.input() || node.id == graph_.loss())
        touch(task, samples(chunk), Mode::read);
      for (const NodeId input : node.inputs)
        if (outside(s, input) || border_here[input.value])
          touch(task, border(chunk, input), Mode::read);
      if (step.work != Work::statistics && border_here[node.id.value])
        touch(task, border(chunk, node.id), Mode::write);
      touch_parameters(task, node, chunk.group);
      touch_meeting(task, s, step, chunk);
      task.flops += flops(step, chunk);
    }
  }

  void backward(SegmentId s, std::uint32_t part, const Chunk& chunk, bool join) {
    const Program& program = program_of_segment(s);
    const Part& steps = program.backward[part];
    if (steps.empty() && !program.weight_gradients.empty()) return;
    Task& task = task_for(chunk.group, join);
    task.actions.push_back(
        {.phase = Phase::backward, .segment = s, .part = part, .chunk = chunk.id});
    touch_arena(task, s, chunk, false);
    const Borders here = borders(s);
    for (const Instruction& step : steps) {
      const Node& node = graph_.node(step.node);
      if (node.id == graph_.loss()) touch(task, samples(chunk), Mode::read);
      read_for_backward(task, s, step, chunk, here);
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const NodeId input = node.inputs[i];
        if (!outside(s, input) && !here.gradients[input.value]) continue;
        const GradientMode mode = blueprint_.flow.mode(node.id, i);
        if (mode != GradientMode::none && gives_input_gradients(step.work))
          touch(task, border_gradient(chunk, input),
                mode == GradientMode::add ? Mode::read_write : Mode::write);
      }
      touch_parameters(task, node, chunk.group);
      touch_gradients(task, step, chunk);
      touch_meeting(task, s, step, chunk);
      task.flops += flops(step, chunk);
    }
  }

  // Values and gradients in buffers of their own that an instruction of backward reads.
  void read_for_backward(Task& task, SegmentId s, const Instruction& step, const Chunk& chunk,
                         const Borders& here) {
    const Node& node = graph_.node(step.node);
    if (node.id != graph_.loss()) {
      if (here.gradients[node.id.value]) touch(task, border_gradient(chunk, node.id), Mode::read);
      if (here.values[node.id.value] && node.op->backward_reads_output)
        touch(task, border(chunk, node.id), Mode::read);
    }
    // Weights alone make input gradients of output gradients, where the two are computed apart.
    if (!node.op->backward_reads_input || step.work == Work::input_gradient) return;
    for (const NodeId input : node.inputs)
      if (outside(s, input) || here.values[input.value])
        touch(task, border(chunk, input), Mode::read);
  }

  // Nothing but the buckets' steps waits for these tasks. What they read lies in buffers of its
  // own, so the next parts of backward run beside them.
  void weight_gradients(SegmentId s, std::uint32_t part) {
    const Program& program = program_of_segment(s);
    if (program.weight_gradients.empty() || program.weight_gradients[part].empty()) return;
    const Borders here = borders(s);
    for (const Chunk& chunk : blueprint_.chunks) {
      Task& task = task_for(chunk.group, false);
      task.actions.push_back(
          {.phase = Phase::weight_gradient, .segment = s, .part = part, .chunk = chunk.id});
      // StarPU's own schedulers know no ranks: what is computed next in line goes first.
      if (task.actions.size() == 1) task.priority = -1;
      for (const Instruction& step : program.weight_gradients[part]) {
        read_for_backward(task, s, step, chunk, here);
        touch_gradients(task, step, chunk);
        task.flops += flops(step, chunk);
      }
    }
  }

  void touch_gradients(Task& task, const Instruction& step, const Chunk& chunk) {
    if (!gives_parameter_gradients(step.work)) return;
    for (const ParameterId parameter : graph_.node(step.node).parameters)
      touch_gradient(task, parameter, chunk);
  }

  void touch_gradient(Task& task, ParameterId parameter, const Chunk& chunk) {
    const BucketId b = blueprint_.bucket_of[parameter.value];
    if (blueprint_.by_redux()) {
      touch(task, gradient(b, 0), Mode::reduce);
      return;
    }
    const std::uint32_t slot = gradient(b, chunk.slot);
    const bool begins = written_.insert(slot).second && !adds(list_.job);
    const auto elements = static_cast<std::size_t>(graph_.parameter(parameter).shape.elements());
    touch(task, slot, begins ? Mode::write : Mode::read_write,
          {blueprint_.parameter_offset[parameter.value], elements * sizeof(float)});
  }

  void touch_parameters(Task& task, const Node& node, GroupId group) {
    for (const ParameterId parameter : node.parameters) {
      const BucketId b = blueprint_.bucket_of[parameter.value];
      touch(task, parameters(b), Mode::read);
      touch_packed(task, b, group, Mode::read);
    }
  }

  void touch_meeting(Task& task, SegmentId s, const Instruction& step, const Chunk& chunk) {
    const Node& node = graph_.node(step.node);
    if (!node.op->meets) return;
    const SegmentPlace& place = blueprint_.segments[s.value];
    const bool grouped = statistics_group(node) > 0;
    const auto statistics = [&](Mode mode) {
      touch(task,
            segment_buffer(BufferKind::statistics, s, place.statistics_bytes,
                           grouped ? chunk.id.value : 0),
            mode, statistics_of(node.id));
    };
    const auto partials = [&](Mode mode) {
      touch(task, segment_buffer(BufferKind::partials, s, place.partials_bytes, chunk.id.value),
            mode, partials_of(node.id));
    };
    const auto state = [&](Mode mode) {
      touch(task, segment_buffer(BufferKind::state, s, place.state_bytes), mode,
            state_range(blueprint_, node.id));
    };
    switch (step.work) {
      case Work::forward:
        if (pass_ == Pass::train) statistics(Mode::read_write);
        if (pass_ == Pass::train && grouped)
          partials(Mode::read_write);
        else
          state(pass_ == Pass::train ? Mode::read_write : Mode::read);
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

  // Of a segment's buffers, the bytes that belong to one meeting operator.
  ByteRange statistics_of(NodeId node) const {
    return {blueprint_.statistics_offset[node.value], statistics_bytes(blueprint_, node)};
  }
  ByteRange partials_of(NodeId node) const {
    return {blueprint_.partials_offset[node.value], partials_bytes(blueprint_, node)};
  }

  void meet(SegmentId s, std::uint32_t part, Phase phase) {
    const SegmentPlace& place = blueprint_.segments[s.value];
    const NodeId node =
        meeting_after(program_of_segment(s), part, phase == Phase::combine_gradient);
    const auto read_partials = [&](Task& task) {
      for (const Chunk& chunk : blueprint_.chunks)
        touch(task, segment_buffer(BufferKind::partials, s, place.partials_bytes, chunk.id.value),
              Mode::read, partials_of(node));
    };
    if (several()) {
      const bool back = phase == Phase::combine_gradient;
      Task& exchange =
          travelling_task({.phase = back ? Phase::exchange_gradient_sums : Phase::exchange_sums,
                           .segment = s,
                           .part = part});
      read_partials(exchange);
      touch(exchange, gathered_sums(s), Mode::read_write);
    }
    Task& task = task_for(blueprint_.owner, false);
    task.actions.push_back({.phase = phase, .segment = s, .part = part});
    task.priority = 1;
    if (several())
      touch(task, gathered_sums(s), Mode::read);
    else
      read_partials(task);
    touch(task, segment_buffer(BufferKind::statistics, s, place.statistics_bytes), Mode::read_write,
          statistics_of(node));
    if (phase == Phase::combine)
      touch(task, segment_buffer(BufferKind::state, s, place.state_bytes), Mode::read_write,
            state_range(blueprint_, node));
  }

  // Nothing of this step waits for it.
  void track(SegmentId s) {
    const SegmentPlace& place = blueprint_.segments[s.value];
    const auto read_partials = [&](Task& task) {
      for (const Chunk& chunk : blueprint_.chunks)
        touch(task, segment_buffer(BufferKind::partials, s, place.partials_bytes, chunk.id.value),
              Mode::read);
    };
    if (several()) {
      Task& exchange = travelling_task({.phase = Phase::exchange_group_sums, .segment = s});
      read_partials(exchange);
      touch(exchange, gathered_sums(s), Mode::read_write);
    }
    Task& task = task_for(blueprint_.owner, false);
    task.actions.push_back({.phase = Phase::track, .segment = s});
    if (several())
      touch(task, gathered_sums(s), Mode::read);
    else
      read_partials(task);
    touch(task, segment_buffer(BufferKind::state, s, place.state_bytes), Mode::read_write);
  }

  // What a GPU computed is delivered by tasks of their own, after the step's.
  void late_deliveries() {
    for (const Chunk& chunk : blueprint_.chunks)
      if (!on_cpu(chunk.group)) deliver(chunk, false);
  }

  void deliver(const Chunk& chunk, bool join) {
    Task& task = host_task(chunk.group, join);
    task.actions.push_back({.phase = Phase::deliver, .chunk = chunk.id});
    touch(task, border(chunk, graph_.loss()), Mode::read);
    if (pass_ == Pass::evaluate) touch(task, border(chunk, graph_.logits()), Mode::read);
    if (several()) touch(task, delivered(chunk), Mode::write);
  }

  void exchange_results() {
    if (!several()) return;
    Task& task = travelling_task({.phase = Phase::exchange_results});
    for (const Chunk& chunk : blueprint_.chunks) touch(task, delivered(chunk), Mode::read);
  }

  // A bucket's gradient is complete: slots are summed, and parameters take their step, unless
  // clipping wants the whole gradient first.
  void settle(BucketId b) {
    const Bucket& bucket = blueprint_.buckets[b.value];
    const bool gather = blueprint_.plan.gather_phases;
    const int slots = gradient_slots(blueprint_.plan);
    const bool continues = blueprint_.adds_running_sum();
    const auto running_sum = [&] {
      return buffer(BufferKind::running_sum, b.value, 0, bucket.bytes);
    };
    if (continues) {
      Task& task =
          travelling_task({.phase = Phase::running_sum, .segment = bucket.segment, .bucket = b});
      touch(task, running_sum(), Mode::write);
    }
    for (std::uint32_t g = 0; g < groups_of(blueprint_.plan).size(); ++g)
      if (sums_own_slots(blueprint_, GroupId{g})) sum_slots_of(GroupId{g}, b);
    if (slots > 1 || continues) {
      Task& task = task_for(blueprint_.owner, false);
      task.actions.push_back({.phase = Phase::reduce,
                              .segment = bucket.segment,
                              .bucket = b,
                              .group = blueprint_.owner});
      task.priority = 1;
      touch(task, gradient(b, 0), Mode::read_write);
      for (std::uint32_t g = 0; g < groups_of(blueprint_.plan).size(); ++g) {
        const SlotRange range = slots_of(blueprint_, GroupId{g});
        if (sums_own_slots(blueprint_, GroupId{g}))
          touch(task, group_sum(b, GroupId{g}), Mode::read);
        else
          for (int slot = range.first; slot < range.first + range.count; ++slot)
            if (slot > 0 && slot < slots) touch(task, gradient(b, slot), Mode::read);
      }
      if (continues) touch(task, running_sum(), Mode::read);
    }
    if (several()) {
      Task& task =
          travelling_task({.phase = Phase::exchange, .segment = bucket.segment, .bucket = b});
      touch(task, gradient(b, 0), Mode::read_write);
    }
    const bool join = gather && slots > 1 && !several();
    if (clips()) {
      measure(b, join);
    } else {
      step(b, join);
      pack(b, gather);
    }
  }

  std::uint32_t group_sum(BucketId b, GroupId group) {
    return buffer(BufferKind::group_sum, b.value, group.value, blueprint_.buckets[b.value].bytes);
  }

  void sum_slots_of(GroupId group, BucketId b) {
    Task& task = task_for(group, false);
    task.actions.push_back({.phase = Phase::reduce,
                            .segment = blueprint_.buckets[b.value].segment,
                            .bucket = b,
                            .group = group});
    task.priority = 1;
    const SlotRange range = slots_of(blueprint_, group);
    for (int slot = range.first; slot < range.first + range.count; ++slot)
      touch(task, gradient(b, slot), Mode::read);
    touch(task, group_sum(b, group), Mode::write);
  }

  bool clips() const { return blueprint_.optimizer.clip_norm > 0; }
  std::uint32_t squares(BucketId b) {
    return buffer(BufferKind::squares, b.value, 0, sizeof(double));
  }
  std::uint32_t clip() { return buffer(BufferKind::clip, 0, 0, sizeof(float)); }

  void measure(BucketId b, bool join) {
    Task& task = task_for(blueprint_.owner, join);
    task.actions.push_back(
        {.phase = Phase::measure, .segment = blueprint_.buckets[b.value].segment, .bucket = b});
    task.priority = 1;
    touch(task, gradient(b, 0), Mode::read);
    touch(task, squares(b), Mode::write);
  }

  void clipped_updates() {
    Task& task = task_for(blueprint_.owner, false);
    task.actions.push_back({.phase = Phase::clip});
    task.priority = 1;
    for (std::uint32_t b = 0; b < blueprint_.buckets.size(); ++b)
      touch(task, squares(BucketId{b}), Mode::read);
    touch(task, clip(), Mode::write);
    // The next forward begins with the first parameters.
    for (std::uint32_t b = 0; b < blueprint_.buckets.size(); ++b) {
      step(BucketId{b}, false);
      pack(BucketId{b}, blueprint_.plan.gather_phases);
    }
  }

  void step(BucketId b, bool join) {
    const Bucket& bucket = blueprint_.buckets[b.value];
    Task& task = task_for(blueprint_.owner, join);
    task.actions.push_back({.phase = Phase::update, .segment = bucket.segment, .bucket = b});
    task.priority = 1;
    touch(task, gradient(b, 0), Mode::read);
    touch(task, parameters(b), Mode::read_write);
    for (int index = 0; index < most_moments; ++index)
      if (keeps_moment(blueprint_.optimizer, index))
        touch(task,
              buffer(BufferKind::moment, b.value, static_cast<std::uint32_t>(index), bucket.bytes),
              Mode::read_write);
    if (blueprint_.optimizer.ema > 0)
      touch(task, buffer(BufferKind::average, b.value, 0, bucket.bytes), Mode::read_write);
    if (clips()) touch(task, clip(), Mode::read);
  }

  // Every group lays the parameters out for itself; the owner may do so with the step.
  void pack(BucketId b, bool join_step) {
    const Bucket& bucket = blueprint_.buckets[b.value];
    const auto pack_for = [&](GroupId group, bool join) {
      if (bucket.packed_bytes[group.value] == 0) return;
      Task& task = task_for(group, join);
      task.actions.push_back(
          {.phase = Phase::pack, .segment = bucket.segment, .bucket = b, .group = group});
      task.priority = 1;
      touch(task, parameters(b), Mode::read);
      touch_packed(task, b, group, Mode::write);
    };
    pack_for(blueprint_.owner, join_step);
    for (std::uint32_t g = 0; g < bucket.packed_bytes.size(); ++g)
      if (GroupId{g} != blueprint_.owner) pack_for(GroupId{g}, false);
  }

  // --- facts

  bool several() const { return blueprint_.ranks.several(); }
  bool on_cpu(GroupId group) const { return blueprint_.group(group).kind == DeviceKind::cpu; }
  bool load_with_forward(const Chunk& chunk) const {
    const bool asked = blueprint_.plan.gather_loads ||
                       (pass_ == Pass::evaluate && blueprint_.whole_chunks_forward());
    return asked && together_ == Together::parts && on_cpu(chunk.group);
  }
  const Program& program_of_segment(SegmentId s) const {
    const SegmentPlace& place = blueprint_.segments[s.value];
    return pass_ == Pass::evaluate ? place.evaluate : place.train;
  }
  Borders borders(SegmentId s) const {
    const Segment& range = blueprint_.plan.segments[s.value];
    return borders_of(graph_, range.first, range.last, pass_, program_of_segment(s));
  }
  bool outside(SegmentId s, NodeId node) const { return blueprint_.segment_of[node.value] != s; }
  double flops(const Instruction& step, const Chunk& chunk) const {
    const Node& node = graph_.node(step.node);
    const Cost cost = node.op->cost(node, input_shapes(graph_, node));
    return (goes_back(step.work) ? cost.backward_flops * share_of_backward(blueprint_.flow, step)
                                 : cost.forward_flops) *
           static_cast<double>(chunk.capacity);
  }

  const Blueprint& blueprint_;
  const Graph& graph_;
  Pass pass_;
  Together together_ = Together::parts;
  TaskList list_;
  std::map<std::tuple<BufferKind, std::uint32_t, std::uint32_t>, std::uint32_t> numbers_;
  std::set<std::uint32_t> written_;  // gradient slots that this step has begun
};

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

TaskList lower(const Blueprint& blueprint, ListKind job) { return Lowering(blueprint, job).run(); }

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
