// What running a piece of the graph means, instruction by instruction: the order of operators
// forward and backward, where a cut batch must meet, and which gradients are written or added to.
#pragma once

#include <vector>

#include "base/dtype.h"
#include "base/precision.h"
#include "graph/graph.h"

namespace regatta {

enum class Pass { train, evaluate };

enum class Work {
  forward,
  backward,
  // A meeting operator on a cut batch: the chunk's own sums, then, once all chunks' sums are
  // merged, the rest. Both ways.
  statistics,
  normalise,
  gradient_sums,
  gradient_apply,
  // A backward that is split: the gradients of the operator's inputs, and those of its parameters.
  input_gradient,
  weight_gradient,
};
constexpr bool gives_input_gradients(Work work) {
  return work == Work::backward || work == Work::gradient_apply || work == Work::input_gradient;
}
// A meeting operator gives its parameters' gradients with the chunk's own sums.
constexpr bool gives_parameter_gradients(Work work) {
  return work == Work::backward || work == Work::gradient_sums || work == Work::weight_gradient;
}
constexpr bool goes_back(Work work) {
  return gives_input_gradients(work) || gives_parameter_gradients(work);
}

struct Instruction {
  NodeId node;
  Work work = Work::forward;
  bool operator==(const Instruction&) const = default;
};

using Part = std::vector<Instruction>;

// A segment's work on one chunk. Between consecutive parts all chunks meet at `meetings[i]`;
// forward has meetings.size() + 1 parts, and so has backward, meeting in reverse order.
struct Program {
  std::vector<Part> forward, backward;
  // Empty, unless backward is split: then, for each part of backward, the weight gradients that
  // may be computed at any time after that part. Parts of either kind may be empty.
  std::vector<Part> weight_gradients;
  std::vector<NodeId> meetings;
  // In training: operators whose statistics are those of groups of samples. Nothing meets there;
  // their running statistics take the mean over all groups once a step.
  std::vector<NodeId> grouped;
};

// Samples of the batch whose statistics a meeting operator takes together: its attribute "group".
// 0: those of the whole batch.
std::int64_t statistics_group(const Node& node);
std::int64_t statistics_group(const Graph& graph);  // of all its operators, which agree
// Chunks and shares are whole multiples of so many samples, but for the batch's last; 1: any.
std::int64_t granule_of(const Graph& graph);
std::int64_t granules_of(const Graph& graph, std::int64_t samples);  // chunks of them, at most
// Whether the chunks of a cut batch must meet here in training.
bool meets(const Node& node);

// Floats per meeting operator (and group, where there are any): mean, inverse deviation, and for
// backward the mean gradient and the mean of gradient times distance from the mean. Doubles per
// chunk: two sums each way.
constexpr std::size_t statistics_rows = 4, partials_rows = 2;
// A row's length: channels rounded up to the widest block, so that vector kernels may run over the
// end.
constexpr std::size_t padded_channels(std::int64_t channels) {
  return static_cast<std::size_t>((channels + 15) / 16 * 16);
}

// `first` to `last` inclusive. `cut`: the batch comes in several chunks, so operators that need the
// whole batch split the program. `split_backward`: weight gradients come in parts of their own,
// where an operator can compute them apart. `recomputed`: the first part of backward begins with
// forward instructions, by which it gets back those values and stashes inside the segment that
// backward reads. Merged statistics are kept, so no chunk waits for others then.
Program program_of(const Graph& graph, NodeId first, NodeId last, Pass pass, bool cut,
                   bool split_backward = false, bool recomputed = false);

// How a node's backward leaves the gradient of each of its inputs.
enum class GradientMode { none, write, add };

// Facts about gradients that follow from the graph alone.
class GradientFlow {
 public:
  explicit GradientFlow(const Graph& graph);

  // Some parameter lies at or before this node, so its value has a gradient.
  bool wanted(NodeId node) const { return wanted_[node.value]; }
  // Indexed as node.inputs. Backward visits nodes in reverse, so the last user writes, others add.
  GradientMode mode(NodeId node, std::size_t input) const { return modes_[node.value][input]; }

  // The backward of this node gives gradients of its inputs too, not of its parameters alone.
  bool passes_on(NodeId node) const;

 private:
  std::vector<bool> wanted_;
  std::vector<std::vector<GradientMode>> modes_;
};

// How much of its operator's backward an instruction of a split backward does, by multiplications:
// the two halves of a convolution or a dense layer have the same number. 1: all of it.
double share_of_backward(const GradientFlow& flow, const Instruction& step);

// The element type of every node's value and of its gradient. In bf16 the logits and the loss stay
// fp32: differences between logits are what the loss is made of.
std::vector<Dtype> value_dtypes(const Graph& graph, Precision precision);

// The layout of every node's value when a device group computes in `preferred`: plain vectors stay
// plain, and an image of at most four channels that only convolutions read, and those without
// groups, stays planar, because their first layer has kernels for just that. So does on a CPU what
// a first convolution of few channels makes, as far as only relus and pooling come before it is
// flattened: padded to whole blocks, most of it would be zeros.
std::vector<Layout> value_layouts(const Graph& graph, Layout preferred);

// Channels of the input's value as it lies in memory. Tensor cores take 16 bytes of channels at
// once, so an image that only convolutions read, channels last, gets channels of zeros up to that;
// its convolutions' weights get zeros to match.
std::int64_t input_channels(const Graph& graph, Layout preferred, Precision precision);

}  // namespace regatta
