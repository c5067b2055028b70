#include "parity/formula.h"

#include <cmath>
#include <string>

#include "base/random.h"
#include "graph/op.h"

namespace regatta {
namespace {

constexpr std::uint64_t seed = 8;  // why 8: scripts/parity-fixtures

// Uniform in [-1, 1), exact in float.
float symmetric(std::string_view name, std::int64_t index) {
  return random_uniform(seed, stream_of(name), static_cast<std::uint64_t>(index)) * 2 - 1;
}

// Products with anything but one rounded factor are by powers of two, hence exact: a compiler that
// fuses them into the sum changes nothing.
float weight(const Parameter& parameter, bool of_norm, std::int64_t index) {
  const float u = symmetric(parameter.name, index);
  const Shape& shape = parameter.shape;
  if (shape.rank() > 1) {
    const auto fan_in = static_cast<double>(shape.elements() / shape[0]);
    return u * static_cast<float>(std::sqrt(6.0 / fan_in));
  }
  if (!of_norm) return 0.125f * u;
  // Clear of every relu's kink: why and how far, see scripts/parity-fixtures.
  if (parameter.name.ends_with(".weight")) return 0.25f + 0.03125f * u;
  return u < -0.5f ? -16.0f : 1.0f + 0.125f * u;
}

float calm_weight(const Parameter& parameter, std::int64_t index) {
  const float u = symmetric(parameter.name, index);
  const Shape& shape = parameter.shape;
  if (shape.rank() == 1) return u < -0.5f ? -32.0f : 8.0f + 0.125f * u;
  const auto fan_in = static_cast<double>(shape.elements() / shape[0]);
  return u * static_cast<float>(std::sqrt(6.0 / fan_in) * 0.125);
}

template <class T>
Tensors<T> converted(const Tensors<float>& tensors) {
  Tensors<T> out;
  for (const std::vector<float>& tensor : tensors) out.emplace_back(tensor.begin(), tensor.end());
  return out;
}

}  // namespace

Tensors<float> make_weights(const Graph& graph, bool calm) {
  Tensors<float> weights;
  for (const Parameter& parameter : graph.parameters()) {
    const bool of_norm = graph.node(parameter.node).op->name == "batch_norm";
    std::vector<float>& values = weights.emplace_back();
    for (std::int64_t i = 0; i < parameter.shape.elements(); ++i)
      values.push_back(calm ? calm_weight(parameter, i) : weight(parameter, of_norm, i));
  }
  return weights;
}

Tensors<float> make_states(const Graph& graph) {
  Tensors<float> states;
  for (const Parameter& state : graph.states())
    states.emplace_back(static_cast<std::size_t>(state.shape.elements()),
                        state.init.kind == Init::Kind::ones ? 1.0f : 0.0f);
  return states;
}

std::vector<float> make_images(const Graph& graph, std::int64_t n) {
  std::vector<float> images;
  for (std::int64_t i = 0; i < n * graph.node(graph.input()).shape.elements(); ++i)
    images.push_back(symmetric("image", i));
  return images;
}

std::vector<std::int32_t> make_labels(const Graph& graph, std::int64_t n) {
  const auto classes = static_cast<std::uint64_t>(graph.classes());
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint64_t bits = random_bits(seed, stream_of("label"), static_cast<std::uint64_t>(i));
    labels.push_back(static_cast<std::int32_t>(bits % classes));
  }
  return labels;
}

template <class T>
ReferenceInput<T> make_input(const Graph& graph, std::int64_t n, bool calm) {
  const std::vector<float> images = make_images(graph, n);
  return {.parameters = converted<T>(make_weights(graph, calm)),
          .states = converted<T>(make_states(graph)),
          .images = {images.begin(), images.end()},
          .labels = make_labels(graph, n),
          .seed = seed};
}

template <class T>
Projections projections(std::string_view name, std::span<const T> tensor) {
  const std::uint64_t stream = stream_of(std::string(name) + "#projections");
  Projections sums{};
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    const std::uint64_t signs = random_bits(seed, stream, i);
    for (std::size_t k = 0; k < sums.size(); ++k)
      sums[k] += (signs >> k & 1) != 0 ? -static_cast<double>(tensor[i]) : tensor[i];
  }
  return sums;
}

template ReferenceInput<float> make_input(const Graph&, std::int64_t, bool);
template ReferenceInput<double> make_input(const Graph&, std::int64_t, bool);
template Projections projections(std::string_view, std::span<const float>);
template Projections projections(std::string_view, std::span<const double>);

}  // namespace regatta
