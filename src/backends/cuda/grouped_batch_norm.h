// Batch norm by the statistics of fixed groups of samples: what its groups leave for the running
// statistics. Rows lie exactly as the CPU backend's.
#pragma once

#include <span>

#include "backends/cuda/cuda_backend.h"

namespace regatta::cuda {

// Moves the running statistics once, by the means over all groups of mean and unbiased variance,
// each group counting by its values; groups are added in the order given.
void track_statistics(Stream stream, const Node& node, std::span<const GroupSums> chunks,
                      std::span<float* const> states);

}  // namespace regatta::cuda
