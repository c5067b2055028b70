#include "support/reference_run.h"

#include <type_traits>

#include "graph/op.h"

namespace regatta {
namespace {

template <class T>
void call_forward(const OpDef& op, const ReferenceCall<T>& call) {
  if constexpr (std::is_same_v<T, float>)
    op.forward(call);
  else
    op.forward_double(call);
}

template <class T>
void call_backward(const OpDef& op, const ReferenceCall<T>& call) {
  if constexpr (std::is_same_v<T, float>)
    op.backward(call);
  else
    op.backward_double(call);
}

// The call both passes of `node` make; backward adds its gradients.
template <class T>
ReferenceCall<T> call_of(const Graph& graph, const Node& node, const ReferenceInput<T>& input,
                         ReferenceResult<T>& result, Pass pass) {
  ReferenceCall<T> call;
  call.node = &node;
  call.n = static_cast<std::int64_t>(input.labels.size());
  call.training = pass == Pass::train;
  call.shapes = input_shapes(graph, node);
  for (const NodeId from : node.inputs) call.inputs.push_back(result.values[from.value].data());
  if (node.id == graph.input()) call.inputs.push_back(input.images.data());
  call.output = result.values[node.id.value].data();
  for (const ParameterId id : node.parameters)
    call.parameters.push_back(input.parameters[id.value].data());
  for (const StateId id : node.states) call.states.push_back(result.states[id.value].data());
  call.targets = result.targets.data();
  call.seed = input.seed;
  call.step = input.step;
  return call;
}

template <class T>
void run_backward(const Graph& graph, const ReferenceInput<T>& input, ReferenceResult<T>& result) {
  for (const std::vector<T>& value : result.values)
    result.value_gradients.emplace_back(value.size());
  result.parameter_gradients = zeros_like<T>(graph.parameters());
  // The mean loss: each sample's own counts 1/n; the count of correct answers has no gradient.
  std::vector<T>& start = result.value_gradients[graph.loss().value];
  for (std::size_t i = 0; i < start.size(); i += 2)
    start[i] = T{1} / static_cast<T>(input.labels.size());
  for (std::size_t number = graph.nodes().size(); number-- > 0;) {
    const Node& node = graph.nodes()[number];
    if (!node.op->backward) continue;
    ReferenceCall<T> call = call_of(graph, node, input, result, Pass::train);
    call.output_gradient = result.value_gradients[number].data();
    for (const NodeId from : node.inputs) {
      std::vector<T>& gradient = result.value_gradients[from.value];
      call.input_gradients.push_back(from == graph.input() ? nullptr : gradient.data());
    }
    for (const ParameterId id : node.parameters)
      call.parameter_gradients.push_back(result.parameter_gradients[id.value].data());
    call_backward(*node.op, call);
  }
}

}  // namespace

template <class T>
Tensors<T> zeros_like(std::span<const Parameter> tensors) {
  Tensors<T> zeros;
  for (const Parameter& tensor : tensors)
    zeros.emplace_back(static_cast<std::size_t>(tensor.shape.elements()));
  return zeros;
}

template <class T>
ReferenceResult<T> reference_run(const Graph& graph, const ReferenceInput<T>& input, Pass pass) {
  const std::size_t n = input.labels.size();
  ReferenceResult<T> result;
  result.states = input.states;
  for (const std::int32_t label : input.labels) result.targets.push_back(Target::of(label));
  for (const Node& node : graph.nodes()) {
    result.values.emplace_back(n * static_cast<std::size_t>(node.shape.elements()));
    call_forward(*node.op, call_of(graph, node, input, result, pass));
  }
  const std::vector<T>& last = result.values.back();
  for (std::size_t i = 0; i < n; ++i) {
    result.losses.push_back(last[2 * i]);
    result.loss += last[2 * i] / static_cast<double>(n);
    result.correct += last[2 * i + 1] > T{0};
  }
  if (pass == Pass::train) run_backward(graph, input, result);
  return result;
}

template <class T>
void ReferenceSgd::step(Tensors<T>& parameters, const Tensors<T>& gradients,
                        Tensors<T>& velocities) const {
  const auto rate = static_cast<T>(learning_rate);
  const auto decay = static_cast<T>(weight_decay);
  const auto keep = static_cast<T>(momentum);
  // Zero velocities give PyTorch's first step too: the gradient itself.
  if (velocities.empty())
    for (const std::vector<T>& parameter : parameters) velocities.emplace_back(parameter.size());
  for (std::size_t p = 0; p < parameters.size(); ++p)
    for (std::size_t i = 0; i < parameters[p].size(); ++i) {
      const T gradient = gradients[p][i] + decay * parameters[p][i];
      velocities[p][i] = keep * velocities[p][i] + gradient;
      parameters[p][i] -= rate * velocities[p][i];
    }
}

template Tensors<float> zeros_like(std::span<const Parameter>);
template Tensors<double> zeros_like(std::span<const Parameter>);
template ReferenceResult<float> reference_run(const Graph&, const ReferenceInput<float>&, Pass);
template ReferenceResult<double> reference_run(const Graph&, const ReferenceInput<double>&, Pass);
template void ReferenceSgd::step(Tensors<float>&, const Tensors<float>&, Tensors<float>&) const;
template void ReferenceSgd::step(Tensors<double>&, const Tensors<double>&, Tensors<double>&) const;

}  // namespace regatta
