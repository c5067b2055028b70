// The order of a step: which tasks a list has. What each kind of task accesses is said in
// lower_parts, lower_meetings, lower_exchanges and lower_updates.
#include "tasks/lower_exchanges.h"
#include "tasks/lower_meetings.h"
#include "tasks/lower_parts.h"
#include "tasks/lower_updates.h"

namespace regatta {
namespace {

// Builds one task list. Actions are emitted in an order that sequential execution may follow.
class Lowering {
 public:
  Lowering(const Blueprint& blueprint, ListKind kind)
      : blueprint_(blueprint), list_(blueprint, kind) {}

  TaskList run() {
    if (list_.kind() == ListKind::prepare) {
      for (std::uint32_t b = 0; b < blueprint_.buckets.size(); ++b)
        updates_.pack(BucketId{b}, false);
      return list_.take();
    }
    loads();
    forward_segments();
    if (trains(list_.kind())) backward_segments();
    if (takes_step(list_.kind()) && updates_.clips()) updates_.clipped_updates();
    late_deliveries();
    if (list_.several()) exchange_results(list_);
    return list_.take();
  }

 private:
  void loads() {
    for (const Chunk& chunk : blueprint_.chunks) {
      if (list_.load_with_forward(chunk)) continue;
      const std::uint32_t pieces = load_pieces(blueprint_, chunk);
      for (std::uint32_t piece = 0; piece < pieces; ++piece)
        load(chunk, list_.host_task(chunk.group, false), piece,
             pieces > 1 ? Mode::write_part : Mode::write);
    }
  }

  void load(const Chunk& chunk, Task& task, std::uint32_t piece = 0, Mode mode = Mode::write) {
    task.actions.push_back({.phase = Phase::load, .part = piece, .chunk = chunk.id});
    // Loading ahead must not hold up the step that is computing.
    if (task.on_host && task.actions.size() == 1) task.priority = -1;
    list_.touch(task, list_.samples(chunk), mode);
  }

  void forward_segments() {
    for (std::uint32_t s = 0; s < blueprint_.segments.size(); ++s) {
      const SegmentId segment{s};
      const Program& program = list_.program_of(segment);
      for (std::uint32_t part = 0; part < program.forward.size(); ++part) {
        for (const Chunk& chunk : blueprint_.chunks) {
          const bool last =
              s + 1 == blueprint_.segments.size() && part + 1 == program.forward.size();
          const bool loads = list_.load_with_forward(chunk) && s == 0 && part == 0;
          if (loads) load(chunk, list_.task_for(chunk.group, false));
          parts_.forward(segment, part, chunk, loads);
          if (!last) continue;
          // Delivering happens on the host: a CPU task takes it along, a GPU task cannot.
          const bool gather = blueprint_.plan.gather_phases;
          if (list_.on_cpu(chunk.group)) deliver(chunk, gather);
          if (list_.pass() == Pass::train && gather) parts_.backward(segment, 0, chunk, true);
        }
        if (part + 1 < program.forward.size()) meet(list_, segment, part, Phase::combine);
      }
      if (!program.grouped.empty()) track(list_, segment);
    }
  }

  void backward_segments() {
    for (std::uint32_t s = static_cast<std::uint32_t>(blueprint_.segments.size()); s-- > 0;) {
      const SegmentId segment{s};
      const Program& program = list_.program_of(segment);
      const bool final_segment = s + 1 == blueprint_.segments.size();
      for (std::uint32_t part = 0; part < program.backward.size(); ++part) {
        const bool done_already = final_segment && part == 0 && blueprint_.plan.gather_phases;
        if (!done_already)
          for (const Chunk& chunk : blueprint_.chunks) parts_.backward(segment, part, chunk, false);
        parts_.weight_gradients(segment, part);
        if (part + 1 < program.backward.size()) meet(list_, segment, part, Phase::combine_gradient);
      }
      if (!takes_step(list_.kind())) continue;
      for (std::uint32_t b = 0; b < blueprint_.buckets.size(); ++b)
        if (blueprint_.buckets[b].segment == segment) updates_.reduce_and_update(BucketId{b});
    }
  }

  // A GPU's results are delivered by tasks of their own, which come after all others of the step.
  void late_deliveries() {
    for (const Chunk& chunk : blueprint_.chunks)
      if (!list_.on_cpu(chunk.group)) deliver(chunk, false);
  }

  void deliver(const Chunk& chunk, bool join) {
    Task& task = list_.host_task(chunk.group, join);
    task.actions.push_back({.phase = Phase::deliver, .chunk = chunk.id});
    list_.touch(task, list_.border(chunk, blueprint_.graph.loss()), Mode::read);
    if (list_.pass() == Pass::evaluate)
      list_.touch(task, list_.border(chunk, blueprint_.graph.logits()), Mode::read);
    if (list_.several()) list_.touch(task, list_.delivered(chunk), Mode::write);
  }

  const Blueprint& blueprint_;
  ListBuilder list_;
  PartLowering parts_{list_};
  UpdateLowering updates_{list_};
};

}  // namespace

TaskList lower(const Blueprint& blueprint, ListKind kind) {
  return Lowering(blueprint, kind).run();
}

}  // namespace regatta
