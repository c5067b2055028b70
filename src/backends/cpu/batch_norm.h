// Batch norm whose batch may be cut: what chunks exchange where they meet.
#pragma once

#include <span>

#include "backends/operands.h"
#include "graph/graph.h"

namespace regatta::cpu {

// Merges chunks' (mean, squared deviations) in the order given, into the batch's mean and inverse
// deviation, and updates the running statistics once.
void combine_statistics(const Node& node, std::span<const PartialSums> chunks, float* statistics,
                        std::span<float* const> states);

// Adds chunks' (sum of gradients, sum of gradients times distance) in the order given.
void combine_gradients(const Node& node, std::span<const PartialSums> chunks, float* statistics);

}  // namespace regatta::cpu
