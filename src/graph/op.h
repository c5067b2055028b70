// What an operator is: one row of data and plain reference kernels.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/target.h"
#include "graph/graph.h"

namespace regatta {

// Per sample. Backward is counted as the operator says, not as a multiple of forward.
struct Cost {
  double forward_flops = 0;  // a multiply-add counts as two
  double backward_flops = 0;
};

// A tensor an operator declares: "weight", its shape, and how it starts out.
struct TensorSpec {
  std::string suffix;
  Shape shape;
  Init init;
};

// One call of a reference kernel on `n` samples, plain NCHW. Backward *adds* to every gradient it
// is given; a null gradient is not wanted.
template <class T>
struct ReferenceCall {
  const Node* node = nullptr;
  std::int64_t n = 0;
  bool training = true;
  std::vector<Shape> shapes;  // of the inputs, per sample
  std::vector<const T*> inputs;
  T* output = nullptr;
  std::vector<const T*> parameters;
  std::vector<T*> states;           // forward in training updates them
  const Target* targets = nullptr;  // the loss alone reads them
  // What random operators draw from: the run's seed, the micro-batches before this one, and where
  // in the whole batch the first of the samples stands.
  std::uint64_t seed = 0, step = 0;
  std::int64_t first_sample = 0;
  const T* output_gradient = nullptr;
  std::vector<T*> input_gradients;
  std::vector<T*> parameter_gradients;
};

using Shapes = std::span<const Shape>;

struct OpDef {
  std::string_view name;

  // The value's shape; checks inputs and attributes, throwing InputError that starts with
  // "<op> '<node name>': ".
  Shape (*infer)(const Node&, Shapes inputs) = nullptr;
  std::vector<TensorSpec> (*parameters)(const Node&, Shapes inputs) = nullptr;  // null: none
  std::vector<TensorSpec> (*states)(const Node&, Shapes inputs) = nullptr;      // null: none
  Cost (*cost)(const Node&, Shapes inputs) = nullptr;

  // What backward reads again; decides what memory lives on between the passes.
  bool backward_reads_input = false;
  bool backward_reads_output = false;
  // Bytes a forward leaves for its backward besides values, per sample, for an output of
  // `elements` (padding included); null: none. Max pooling keeps which input won.
  std::int64_t (*stash_bytes)(const Node&, std::int64_t elements) = nullptr;
  // Its parameters' gradients can be computed apart from those of its inputs, before or after them
  // (graph/program.h: a program whose backward is split).
  bool splits_backward = false;
  // Needs other samples of the batch in training: where a cut batch meets, unless the node's
  // attribute "group" says that statistics are those of groups of samples (graph/program.h).
  bool meets = false;

  void (*forward)(const ReferenceCall<float>&) = nullptr;
  void (*backward)(const ReferenceCall<float>&) = nullptr;
  void (*forward_double)(const ReferenceCall<double>&) = nullptr;
  void (*backward_double)(const ReferenceCall<double>&) = nullptr;
};

// The shapes of a node's inputs.
std::vector<Shape> input_shapes(const Graph& graph, const Node& node);

}  // namespace regatta
