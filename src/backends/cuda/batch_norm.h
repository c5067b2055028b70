// Batch norm whose batch may be cut: what chunks exchange where they meet. Rows lie exactly as the
// CPU backend's, so that chunks of both devices can meet.
#pragma once

#include <span>

#include "backends/cuda/cuda_backend.h"

namespace regatta::cuda {

// Merges chunks' (mean, squared deviations) in the order given, into the batch's mean and inverse
// deviation, and updates the running statistics once.
void combine_statistics(Stream stream, const Node& node, std::span<const PartialSums> chunks,
                        float* statistics, std::span<float* const> states);

// Adds chunks' (sum of gradients, sum of gradients times distance) in the order given.
void combine_gradients(Stream stream, const Node& node, std::span<const PartialSums> chunks,
                       float* statistics);

}  // namespace regatta::cuda
