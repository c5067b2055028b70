#include "exec/interpreter.h"

#include <algorithm>

namespace regatta {
namespace {

class Interpreter {
 public:
  Interpreter(const Blueprint& blueprint, Submission& submission, const Frame& frame,
              Device& device)
      : blueprint_(blueprint),
        graph_(blueprint.graph),
        submission_(submission),
        frame_(frame),
        device_(device) {}

  void act(const Action& action) {
    switch (action.phase) {
      case Phase::load: {
        const ChunkSpan span = submission_.spans[action.chunk.value];
        submission_.input.load(span.first, span.count, frame_.samples(), frame_.labels());
        break;
      }
      case Phase::forward:
      case Phase::backward:
        run_part(action);
        break;
      case Phase::combine:
      case Phase::combine_gradient:
        combine(action);
        break;
      case Phase::deliver:
        deliver(submission_.spans[action.chunk.value]);
        break;
      case Phase::reduce:
        reduce(action.bucket);
        break;
      case Phase::update:
        device_.sgd_step(submission_.input.sgd, frame_.gradient(action.bucket, 0),
                         frame_.momentum(action.bucket), frame_.parameters(action.bucket),
                         blueprint_.buckets[action.bucket.value].bytes / sizeof(float));
        break;
      case Phase::pack:
        pack(action.bucket, action.group);
        break;
    }
  }

 private:
  void run_part(const Action& action) {
    const SegmentPlace& place = blueprint_.segments[action.segment.value];
    const bool evaluating = submission_.job == Job::evaluate;
    const Program& program = evaluating ? place.evaluate : place.train;
    const Part& part = action.phase == Phase::forward ? program.forward[action.part]
                                                      : program.backward[action.part];
    const Chunk& chunk = blueprint_.chunks[action.chunk.value];
    const ArenaMap& arena =
        evaluating ? place.evaluate_arena[chunk.group.value] : place.train_arena[chunk.group.value];
    for (const Instruction& step : part) {
      Operands operands = frame_.operands(step, chunk, arena);
      operands.n = submission_.spans[chunk.id.value].count;
      operands.pass = evaluating ? Pass::evaluate : Pass::train;
      operands.loss_scale = 1.0f / static_cast<float>(submission_.input.samples);
      operands.seed = submission_.seed;
      operands.step = submission_.input.step;
      operands.first_sample = submission_.spans[chunk.id.value].first;
      device_.run(step, operands);
    }
  }

  void combine(const Action& action) {
    const Program& program = blueprint_.segments[action.segment.value].train;
    const bool back = action.phase == Phase::combine_gradient;
    const std::size_t meeting =
        back ? program.meetings.size() - 1 - action.part : std::size_t{action.part};
    const Node& node = graph_.node(program.meetings[meeting]);
    const auto pixels = static_cast<double>(node.shape.height() * node.shape.width());
    std::vector<PartialSums> chunks;
    for (const Chunk& chunk : blueprint_.chunks)
      chunks.push_back({frame_.partials(node.id, chunk.id),
                        static_cast<double>(submission_.spans[chunk.id.value].count) * pixels});
    if (back) {
      device_.combine_gradients(node, chunks, frame_.statistics(node.id));
      return;
    }
    std::array<float*, 3> states{};
    for (std::size_t i = 0; i < node.states.size(); ++i) states[i] = frame_.state(node.states[i]);
    device_.combine_statistics(node, chunks, frame_.statistics(node.id), states);
  }

  // On the host.
  void deliver(const ChunkSpan& span) {
    const auto first = static_cast<std::size_t>(span.first);
    const auto count = static_cast<std::size_t>(span.count);
    const float* losses = frame_.border(graph_.loss());
    for (std::size_t i = 0; i < count; ++i) {
      submission_.result.losses[first + i] = losses[2 * i];
      submission_.result.correct[first + i] = losses[2 * i + 1];
    }
    if (submission_.job != Job::evaluate) return;
    const auto classes = static_cast<std::size_t>(graph_.classes());
    std::copy_n(frame_.border(graph_.logits()), count * classes,
                submission_.result.logits.begin() + static_cast<std::ptrdiff_t>(first * classes));
  }

  void reduce(BucketId bucket) {
    std::vector<const float*> others;
    for (int slot = 1; slot < gradient_slots(blueprint_.plan); ++slot)
      others.push_back(frame_.gradient(bucket, slot));
    device_.reduce_slots(frame_.gradient(bucket, 0), others,
                         blueprint_.buckets[bucket.value].bytes / sizeof(float));
  }

  void pack(BucketId bucket, GroupId group) {
    for (const NodeId id : blueprint_.buckets[bucket.value].nodes) {
      const Node& node = graph_.node(id);
      const std::size_t room = blueprint_.packed_room[group.value][id.value];
      if (room == 0) continue;
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
};

}  // namespace

void carry_out(const Blueprint& blueprint, const Task& task, Submission& submission,
               const Frame& frame, Device& device) {
  Interpreter interpreter(blueprint, submission, frame, device);
  for (const Action& action : task.actions) interpreter.act(action);
}

}  // namespace regatta
