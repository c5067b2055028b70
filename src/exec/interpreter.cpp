#include "exec/interpreter.h"

#include <algorithm>
#include <cmath>

#include "graph/op.h"

namespace regatta {
namespace {

class Interpreter {
 public:
  Interpreter(const Blueprint& blueprint, Submission& submission, const Frame& frame,
              Device& device, TaskTimes* times)
      : blueprint_(blueprint),
        graph_(blueprint.graph),
        submission_(submission),
        frame_(frame),
        device_(device),
        times_(times) {}

  void act(const Action& action) {
    if (runs_part(action.phase)) {
      run_part(action);
      return;
    }
    if (action.phase == Phase::pack) {
      pack(action.bucket, action.group);
      return;
    }
    const OperatorTimer timed(times_, action.phase);
    switch (action.phase) {
      case Phase::load:
        load(action);
        break;
      case Phase::forward:
      case Phase::backward:
      case Phase::weight_gradient:
      case Phase::pack:
      case Phase::exchange_sums:
      case Phase::exchange_gradient_sums:
      case Phase::exchange_group_sums:
      case Phase::running_sum:
      case Phase::exchange:
      case Phase::exchange_results:  // by the communicator
        break;
      case Phase::combine:
      case Phase::combine_gradient:
        combine(action);
        break;
      case Phase::track:
        track(action.segment);
        break;
      case Phase::deliver:
        deliver(submission_.spans[action.chunk.value]);
        break;
      case Phase::reduce:
        reduce(action.bucket, action.group);
        break;
      case Phase::measure:
        device_.sum_squares(frame_.gradient(action.bucket, 0),
                            blueprint_.buckets[action.bucket.value].tensors,
                            frame_.mask(action.bucket), frame_.squares(action.bucket));
        break;
      case Phase::clip:
        clip();
        break;
      case Phase::update:
        update(action.bucket);
        break;
    }
  }

 private:
  void load(const Action& action) {
    const ChunkSpan chunk = submission_.spans[action.chunk.value];
    const ChunkSpan piece =
        piece_of(blueprint_, blueprint_.chunks[action.chunk.value], action.part, chunk);
    const std::int64_t offset = piece.first - chunk.first;
    std::byte* samples =
        frame_.samples() + static_cast<std::size_t>(offset) * blueprint_.sample_bytes;
    Target* targets = frame_.targets() + offset;
    device_.share_out(piece.count, [&](std::int64_t begin, std::int64_t end) {
      submission_.input.load(piece.first + begin, end - begin,
                             samples + static_cast<std::size_t>(begin) * blueprint_.sample_bytes,
                             targets + begin);
      if (submission_.job != ListKind::evaluate) return;
      for (std::int64_t i = begin; i < end; ++i)
        submission_.result.labels[static_cast<std::size_t>(piece.first + i)] =
            static_cast<float>(targets[i].expected());
    });
  }

  void run_part(const Action& action) {
    const SegmentPlace& place = blueprint_.segments[action.segment.value];
    const bool evaluating = submission_.job == ListKind::evaluate;
    const Program& program = evaluating ? place.evaluate : place.train;
    const Part& part = part_of(program, action);
    const Chunk& chunk = blueprint_.chunks[action.chunk.value];
    const ArenaMap& arena =
        evaluating ? place.evaluate_arena[chunk.group.value] : place.train_arena[chunk.group.value];
    for (const Instruction& step : part) {
      const OperatorTimer timed(times_, action.phase, &graph_.node(step.node), step.work);
      Operands operands = frame_.operands(step, chunk, arena);
      operands.n = submission_.spans[chunk.id.value].count;
      operands.pass = evaluating ? Pass::evaluate : Pass::train;
      operands.loss_scale = 1.0f / static_cast<float>(submission_.input.samples_of_step());
      operands.add_parameter_gradients |= adds(submission_.job);
      operands.seed = submission_.seed;
      operands.step = submission_.input.step;
      operands.first_sample = submission_.spans[chunk.id.value].first;
      device_.run(step, operands);
      if (submission_.checks_values)
        look(step, chunk, operands);
      else if (device_.on_host() && step.node == graph_.loss() && step.work == Work::forward)
        require_finite_losses(operands.output, operands.n);
    }
  }

  void require_finite_losses(const float* losses, std::int64_t count) const {
    if (!trains(submission_.job) || submission_.checks_values) return;
    for (std::int64_t i = 0; i < count; ++i)
      if (!std::isfinite(losses[2 * i])) throw NotFinite("the loss is no longer a number");
  }

  // At what an instruction has written.
  void look(const Instruction& step, const Chunk& chunk, const Operands& o) {
    const Node& node = graph_.node(step.node);
    const std::vector<ValueForm>& forms = blueprint_.forms[chunk.group.value];
    const auto value_is_fine = [&](const float* value, NodeId id) {
      const ValueForm& form = forms[id.value];
      return device_.finite(value, form.dtype, static_cast<std::size_t>(form.elements * o.n));
    };
    const std::string who = std::string(node.op->name) + " '" + node.name + "'";
    if (step.work == Work::forward || step.work == Work::normalise) {
      if (value_is_fine(o.output, node.id)) return;
      submission_.saw(node.id.value, node.inputs.empty() ? "the samples" : "the forward of " + who);
      return;
    }
    if (step.work == Work::statistics) return;  // normalise shows it
    bool fine = true;
    if (gives_input_gradients(step.work))
      for (std::size_t i = 0; i < node.inputs.size(); ++i)
        if (o.gradient_modes[i] != GradientMode::none)
          fine = fine && value_is_fine(o.input_gradients[i], node.inputs[i]);
    if (gives_parameter_gradients(step.work))
      for (std::size_t i = 0; i < node.parameters.size(); ++i)
        fine = fine && device_.finite(o.parameter_gradients[i], Dtype::f32,
                                      static_cast<std::size_t>(
                                          graph_.parameter(node.parameters[i]).shape.elements()));
    const std::size_t nodes = graph_.nodes().size();
    if (!fine) submission_.saw(2 * nodes - node.id.value, "the backward of " + who);
  }

  void combine(const Action& action) {
    const Program& program = blueprint_.segments[action.segment.value].train;
    const bool back = action.phase == Phase::combine_gradient;
    const Node& node = graph_.node(meeting_after(program, action.part, back));
    const auto pixels = static_cast<double>(node.shape.height() * node.shape.width());
    std::vector<PartialSums> chunks;
    for (std::size_t c = 0; c < submission_.batch_spans.size(); ++c)
      chunks.push_back(
          {sums_of(node.id, c), static_cast<double>(submission_.batch_spans[c].count) * pixels});
    if (back) {
      device_.combine_gradients(node, chunks, frame_.statistics(node.id));
      return;
    }
    device_.combine_statistics(node, chunks, frame_.statistics(node.id), states_of(node));
  }

  void track(SegmentId segment) {
    for (const NodeId id : blueprint_.segments[segment.value].train.grouped) {
      const Node& node = graph_.node(id);
      std::vector<GroupSums> chunks;
      for (std::size_t c = 0; c < submission_.batch_spans.size(); ++c)
        chunks.push_back({sums_of(id, c), submission_.batch_spans[c].count});
      device_.track_statistics(node, chunks, states_of(node));
    }
  }

  // The sums of the whole batch's chunk with this number, whichever rank computed them.
  const double* sums_of(NodeId node, std::size_t chunk) const {
    return blueprint_.ranks.several()
               ? frame_.gathered_sums(node, chunk)
               : frame_.partials(node, ChunkId{static_cast<std::uint32_t>(chunk)});
  }

  std::array<float*, 3> states_of(const Node& node) const {
    std::array<float*, 3> states{};
    for (std::size_t i = 0; i < node.states.size(); ++i) states[i] = frame_.state(node.states[i]);
    return states;
  }

  // On the host.
  void deliver(const ChunkSpan& span) {
    const auto first = static_cast<std::size_t>(span.first);
    const auto count = static_cast<std::size_t>(span.count);
    const float* losses = frame_.border(graph_.loss());
    require_finite_losses(losses, span.count);
    for (std::size_t i = 0; i < count; ++i) {
      submission_.result.losses[first + i] = losses[2 * i];
      submission_.result.correct[first + i] = losses[2 * i + 1];
    }
    if (submission_.job != ListKind::evaluate) return;
    const auto classes = static_cast<std::size_t>(graph_.classes());
    std::copy_n(frame_.border(graph_.logits()), count * classes,
                submission_.result.logits.begin() + static_cast<std::ptrdiff_t>(first * classes));
  }

  void reduce(BucketId bucket, GroupId group) {
    const std::size_t count = blueprint_.buckets[bucket.value].bytes / sizeof(float);
    std::vector<const float*> others;
    const auto add_slots = [&](SlotRange range, int from) {
      for (int slot = std::max(range.first, from); slot < range.first + range.count; ++slot)
        others.push_back(frame_.gradient(bucket, slot));
    };
    if (group != blueprint_.owner) {
      const SlotRange own = slots_of(blueprint_, group);
      add_slots(own, own.first + 1);
      float* sum = frame_.group_sum(bucket, group);
      std::copy_n(frame_.gradient(bucket, own.first), count, sum);
      device_.reduce_slots(sum, others, count);
      return;
    }
    // First, as if the chunks of the ranks before were slots before these.
    if (blueprint_.adds_running_sum()) others.push_back(frame_.running_sum(bucket));
    if (blueprint_.plan.reduction == Reduction::slots) {
      add_slots(slots_of(blueprint_, blueprint_.owner), 1);
      for (std::uint32_t g = 0; g < groups_of(blueprint_.plan).size(); ++g) {
        if (GroupId{g} == blueprint_.owner) continue;
        if (sums_own_slots(blueprint_, GroupId{g}))
          others.push_back(frame_.group_sum(bucket, GroupId{g}));
        else
          add_slots(slots_of(blueprint_, GroupId{g}), 1);
      }
    }
    device_.reduce_slots(frame_.gradient(bucket, 0), others, count);
  }

  void clip() {
    std::vector<const double*> sums;
    for (std::uint32_t b = 0; b < blueprint_.buckets.size(); ++b)
      sums.push_back(frame_.squares(BucketId{b}));
    if (device_.on_host())
      for (const double* sum : sums)
        if (!std::isfinite(*sum)) throw NotFinite("the gradient is no longer a number");
    device_.clip_scale(sums, submission_.numbers, frame_.clip());
  }

  void update(BucketId id) {
    const Bucket& bucket = blueprint_.buckets[id.value];
    if (device_.on_host() &&
        !device_.finite(frame_.gradient(id, 0), Dtype::f32, bucket.bytes / sizeof(float)))
      throw NotFinite("the gradient is no longer a number");
    UpdateStep step;
    step.kind = blueprint_.optimizer.kind;
    step.numbers = &submission_.numbers;
    step.gradient = frame_.gradient(id, 0);
    step.parameters = frame_.parameters(id);
    for (int i = 0; i < most_moments; ++i)
      step.moments[static_cast<std::size_t>(i)] = frame_.moment(id, i);
    step.average = frame_.average(id);
    step.gradient_scale = frame_.clip();
    step.mask = frame_.mask(id);
    step.tensors = bucket.tensors;
    step.count = bucket.bytes / sizeof(float);
    device_.update(step);
  }

  void pack(BucketId bucket, GroupId group) {
    for (const NodeId id : blueprint_.buckets[bucket.value].nodes) {
      const Node& node = graph_.node(id);
      const std::size_t room = blueprint_.packed_room[group.value][id.value];
      if (room == 0) continue;
      const OperatorTimer timed(times_, Phase::pack, &node);
      std::array<const float*, 2> parameters{};
      for (std::size_t i = 0; i < node.parameters.size(); ++i)
        parameters[i] = frame_.parameter(node.parameters[i]);
      device_.pack(node, parameters, frame_.packed(id, group), room);
    }
  }

  const Blueprint& blueprint_;
  const Graph& graph_;
  Submission& submission_;
  const Frame& frame_;
  Device& device_;
  TaskTimes* times_;
};

}  // namespace

void carry_out(const Blueprint& blueprint, const Task& task, Submission& submission,
               const Frame& frame, Device& device, TaskTimes* times) {
  Interpreter interpreter(blueprint, submission, frame, device, times);
  for (const Action& action : task.actions) interpreter.act(action);
}

}  // namespace regatta
