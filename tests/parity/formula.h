// Weights and images as a formula of (seed, name, index), so that PyTorch and Regatta can train on
// the same numbers without storing them. scripts/parity-fixtures computes the same, bit for bit.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "support/reference_run.h"

namespace regatta {

// By ParameterId. Calm ones are for networks without norms: scripts/parity-zoo says why.
Tensors<float> make_weights(const Graph& graph, bool calm = false);
Tensors<float> make_states(const Graph& graph);  // by StateId: as every network starts out
std::vector<float> make_images(const Graph& graph, std::int64_t n);
std::vector<std::int32_t> make_labels(const Graph& graph, std::int64_t n);

// All of the above, for the reference kernels.
template <class T>
ReferenceInput<T> make_input(const Graph& graph, std::int64_t n, bool calm = false);

// The tensor's products with 16 vectors of +1 and -1 that its name gives. They are linear, and the
// mean of their squares estimates the square of the tensor's norm.
using Projections = std::array<double, 16>;
template <class T>
Projections projections(std::string_view name, std::span<const T> tensor);

}  // namespace regatta
