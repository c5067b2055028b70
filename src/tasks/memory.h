// tasks/: graph + plan -> the task list of one step, which the simulator and the executor both
// read: buffers with their sizes, and tasks with what they do and which buffers they touch.
#pragma once

#include <cstddef>
#include <vector>

#include "graph/program.h"

namespace regatta {

// How one sample of a node's value lies in memory.
struct ValueForm {
  Layout layout = Layout::nchw;
  Dtype dtype = Dtype::f32;
  std::int64_t elements = 0;  // padding included

  std::size_t bytes(std::int64_t samples) const {
    return static_cast<std::size_t>(elements * samples) * dtype_bytes(dtype);
  }
};

// By node, for a device group that computes in `layout`.
std::vector<ValueForm> value_forms(const Graph& graph, Layout layout, Precision precision);

// Where the inside of a segment lies in its arena, at one capacity. Tensors whose lives do not
// overlap share bytes.
struct ArenaMap {
  static constexpr std::size_t absent = ~std::size_t{0};
  // Byte offsets, indexed by node; `absent` where the tensor lives elsewhere or nowhere.
  std::vector<std::size_t> values, gradients, stashes;
  std::size_t bytes = 0;
};

// Which values of a segment, and which gradients of values, lie in buffers of their own, by node.
// Values that outlive the segment do, with their gradients, because another segment reads them, or
// the host: the loss always, the logits when evaluating. So does what weight gradients of a split
// backward read: the chunk's arena is used by the next part of backward at the same time.
struct Borders {
  std::vector<bool> values, gradients;
};
Borders borders_of(const Graph& graph, NodeId first, NodeId last, Pass pass,
                   const Program& program);

// `recomputed`: nothing inside lives from forward to backward.
ArenaMap plan_arena(const Graph& graph, NodeId first, NodeId last, Pass pass,
                    const Program& program, const std::vector<ValueForm>& forms,
                    std::int64_t capacity, bool recomputed = false);

// Every tensor starts on a cache line.
constexpr std::size_t align_up(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace regatta
