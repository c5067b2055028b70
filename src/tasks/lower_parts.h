// Tasks that run a part of a segment on a chunk.
#pragma once

#include <set>

#include "tasks/list_builder.h"

namespace regatta {

class PartLowering {
 public:
  explicit PartLowering(ListBuilder& list)
      : list_(list), blueprint_(list.blueprint()), graph_(blueprint_.graph) {}

  // `join`: adds the actions to the task before instead of beginning a new one.
  void forward(SegmentId s, std::uint32_t part, const Chunk& chunk, bool join);
  void backward(SegmentId s, std::uint32_t part, const Chunk& chunk, bool join);
  // Nothing but the buckets' steps waits for these tasks. What they read lies in buffers of its
  // own, so the next parts of backward run beside them.
  void weight_gradients(SegmentId s, std::uint32_t part);

 private:
  // Adds the accesses of an instruction of forward.
  void compute(Task& task, SegmentId s, const Instruction& step, const Chunk& chunk,
               const std::vector<bool>& border_here);
  // Adds what an instruction of backward reads of values and gradients in buffers of their own.
  void read_for_backward(Task& task, SegmentId s, const Instruction& step, const Chunk& chunk,
                         const Borders& here);
  void touch_gradients(Task& task, const Instruction& step, const Chunk& chunk);
  void touch_gradient(Task& task, ParameterId parameter, const Chunk& chunk);
  void touch_parameters(Task& task, const Node& node, GroupId group);

  ListBuilder& list_;
  const Blueprint& blueprint_;
  const Graph& graph_;
  std::set<std::uint32_t> written_;  // gradient slots that this step has begun
};

}  // namespace regatta
