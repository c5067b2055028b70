// A whole network on the reference kernels: the oracle that backends and executor are held to.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/target.h"
#include "graph/graph.h"
#include "graph/program.h"

namespace regatta {

template <class T>
using Tensors = std::vector<std::vector<T>>;

// What a network is run with. `parameters` and `states` are indexed by their ids.
template <class T>
struct ReferenceInput {
  Tensors<T> parameters;
  Tensors<T> states;
  std::vector<T> images;  // n samples, NCHW
  std::vector<std::int32_t> labels;
  std::uint64_t seed = 1, step = 0;  // what dropout draws from
};

template <class T>
struct ReferenceResult {
  double loss = 0;                 // the mean over the samples
  std::vector<T> losses;           // per sample
  std::int64_t correct = 0;        // samples whose largest logit is the label's
  Tensors<T> values;               // by NodeId: n samples each
  Tensors<T> value_gradients;      // by NodeId, of the mean loss; the images' is not taken
  Tensors<T> parameter_gradients;  // by ParameterId, of the mean loss
  Tensors<T> states;               // by StateId, after the pass
  std::vector<Target> targets;     // what was expected
};

// Evaluation runs forward alone: its gradients stay empty and its states as they were.
template <class T>
ReferenceResult<T> reference_run(const Graph& graph, const ReferenceInput<T>& input,
                                 Pass pass = Pass::train);

// One step of SGD as PyTorch takes it: decay joins the gradient, the gradient joins the velocity.
// `velocities` starts empty.
struct ReferenceSgd {
  double learning_rate = 0.1;
  double momentum = 0;
  double weight_decay = 0;

  template <class T>
  void step(Tensors<T>& parameters, const Tensors<T>& gradients, Tensors<T>& velocities) const;
};

// Zeros in the sizes of a graph's parameters() or states().
template <class T>
Tensors<T> zeros_like(std::span<const Parameter> tensors);

}  // namespace regatta
