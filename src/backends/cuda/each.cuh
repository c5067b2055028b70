// One thread per element, or per whole vector of them.
#pragma once

#include <algorithm>

#include "backends/cuda/kernel.h"
#include "backends/cuda/vector.cuh"

namespace regatta::cuda {

constexpr int threads_per_block = 256;

template <class Body>
__global__ void __launch_bounds__(threads_per_block) each_index(std::int64_t count, Body body) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step)
    body(i);
}

// Calls body(i) for i in [0, count), in no order.
template <class Body>
void for_each_index(const Tools& tools, std::int64_t count, const Body& body) {
  if (count == 0) return;
  const std::int64_t blocks = (count + threads_per_block - 1) / threads_per_block;
  // Sixteen blocks wait for each multiprocessor: enough to even out, few enough to be cheap.
  const auto grid = static_cast<unsigned>(std::min<std::int64_t>(blocks, tools.processors * 16));
  each_index<<<grid, threads_per_block, 0, tools.stream>>>(count, body);
}

}  // namespace regatta::cuda
